#include "props/report/decoder_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "props/report/json_values.h"
#include "props/train/decoder_memory.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;
using train::CellStatus;
using train::DecoderDistance;
using train::DecoderReport;

std::string status_word(const DecoderReport& report, const Palette& palette) {
  if (report.is_bad()) return palette.bad(train::status_name(report.status));
  return palette.good(report.from_ranks ? "equal" : "trained");
}

std::string cell_text(const train::DecoderCell& cell) {
  return fmt::format("{} stage {}, {} rank{}, {}, batches of {} x {} tokens a rank{}", cell.model,
                     cell.stage, cell.world_size, cell.world_size == 1 ? "" : "s",
                     train::precision_name(cell.precision), cell.batch, cell.length,
                     cell.uses_cuda_graph ? ", a CUDA graph" : "");
}

std::string distance_text(const DecoderDistance& distance) {
  if (distance.is_bitwise) return "bitwise equal";
  std::string text = fmt::format("losses within {:.2g}", distance.loss);
  if (distance.tensor.empty()) return text + ", parameters bitwise equal";
  return text + fmt::format(", parameters within {:.2g} of the way they went ({})",
                            distance.parameter, distance.tensor);
}

std::string memory_text(const DecoderReport& report) {
  const train::DecoderMemory formula = train::memory_of(report.cell);
  return fmt::format(
      "  at most {} bytes of the GPU with activations: {:.3f} of the formula's {} (states {}, "
      "activations {}, staging {})\n",
      report.gpu_peak_bytes,
      static_cast<double>(report.gpu_peak_bytes) / static_cast<double>(formula.total()),
      formula.total(), formula.states, formula.activations, formula.staging);
}

OrderedJson distance_json(const std::optional<DecoderDistance>& distance) {
  if (!distance) return nullptr;
  return {{"bitwise", distance->is_bitwise},
          {"loss", distance->loss},
          {"parameter", distance->parameter},
          {"tensor", distance->tensor}};
}

}  // namespace

std::string decoder_text(const DecoderReport& report, const Palette& palette) {
  std::string text = fmt::format("{}  {}\n", status_word(report, palette), cell_text(report.cell));
  if (!report.error.empty()) text += fmt::format("  {}\n", report.error);
  if (report.status == CellStatus::failed) return text;
  if (!report.collectives.empty()) text += fmt::format("  collectives: {}\n", report.collectives);
  for (std::size_t step = 0; step < report.losses.size(); ++step)
    text += fmt::format("  step {}: loss {:.6f}\n", step, report.losses[step]);
  text += fmt::format("  at most {} bytes on the device\n", report.peak_bytes);
  if (report.gpu_peak_bytes > 0) text += memory_text(report);
  if (report.times)
    text += fmt::format("  {:.3f} ms an iteration, median of {} ({:.3f} to {:.3f})\n",
                        report.times->median_ms, report.times->steps, report.times->least_ms,
                        report.times->most_ms);
  if (report.from_ranks)
    text += fmt::format("  beside the unsharded run, rank by rank: {}\n",
                        distance_text(*report.from_ranks));
  if (report.from_batch)
    text += fmt::format("  beside the unsharded run on the concatenated batch: {}\n",
                        distance_text(*report.from_batch));
  return text;
}

std::string decoder_json(const DecoderReport& report) {
  const train::DecoderCell& cell = report.cell;
  OrderedJson document = {{"schema", "zeroproof.train_model/1"},
                          {"model", cell.model},
                          {"stage", cell.stage},
                          {"world_size", cell.world_size},
                          {"dtype", train::precision_name(cell.precision)},
                          {"batch", cell.batch},
                          {"length", cell.length},
                          {"seed", cell.seed},
                          {"policy", cell.policy},
                          {"quirks", cell.quirks.text()},
                          {"cuda_graph", cell.uses_cuda_graph},
                          {"status", train::status_name(report.status)}};
  document["error"] = report.error.empty() ? OrderedJson() : OrderedJson(report.error);
  if (!report.collectives.empty()) document["collectives"] = report.collectives;
  document["losses"] = report.losses;
  document["from_ranks"] = distance_json(report.from_ranks);
  document["from_batch"] = distance_json(report.from_batch);
  if (report.times)
    document["iteration_ms"] = {{"steps", report.times->steps},
                                {"median", report.times->median_ms},
                                {"least", report.times->least_ms},
                                {"most", report.times->most_ms}};
  document["live_bytes"] = report.live_bytes;
  document["peak_bytes"] = report.peak_bytes;
  if (report.gpu_peak_bytes > 0) {
    const train::DecoderMemory formula = train::memory_of(cell);
    document["gpu_peak_bytes"] = report.gpu_peak_bytes;
    document["formula_bytes"] = {{"states", formula.states},
                                 {"activations", formula.activations},
                                 {"staging", formula.staging}};
  }
  return document_text(document);
}

JUnitCase decoder_case(const DecoderReport& report) {
  JUnitCase made{.suite = "train", .name = cell_text(report.cell), .text = report.error};
  if (report.is_bad()) made.outcome = JUnitOutcome::failed;
  return made;
}

}  // namespace zeroproof
