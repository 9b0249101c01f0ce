#include "props/cli/checkpoint_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/checkpoint/axis_plan.h"
#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/state_reader.h"
#include "engine/checkpoint/tensor_file.h"
#include "props/report/json_values.h"
#include "props/report/table.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

Result<StateSummary> summarize(RangedFileSystem& files, const std::string& path,
                               const StoredState& state) {
  const auto reader = StateReader::open(files, path, state);
  if (!reader) return tl::unexpected(reader.error());
  StateSummary summary{.parameter = state.parameter,
                       .key = state.key,
                       .place = state.place,
                       .sizes = reader->sizes(),
                       .dtype = reader->dtype(),
                       .files = state.pieces.size()};
  for (const StoredPiece& piece : state.pieces) summary.bytes += piece.record.bytes;
  return summary;
}

Result<std::int64_t> step_of(FileSystem& files, const std::string& path, const StoredState& state) {
  const std::string at = path + "/" + state.pieces.front().file;
  const auto bytes = read_shard_file(files, at, state.pieces.front().record);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto tensor = parse_tensor(*bytes, at);
  if (!tensor) return tl::unexpected(tensor.error());
  return tensor->values.empty() ? 0 : static_cast<std::int64_t>(tensor->values.front());
}

bool has_shards(const Manifest& manifest) {
  return manifest.data_size > 0;
}

OrderedJson ranks_json(const Manifest& manifest) {
  const OrderedJson data = has_shards(manifest) ? OrderedJson(manifest.data_size) : nullptr;
  return {{"data_parallel_size", data},
          {"tensor_parallel_size", manifest.tensor_size},
          {"expert_parallel_size", manifest.expert_size}};
}

struct Totals {
  std::set<std::string> parameters;
  std::map<std::string, std::int64_t> dtypes;  // states of each
  std::int64_t elements = 0;                   // of weights
  std::uint64_t bytes = 0;
};

Totals totals_of(const CheckpointSummary& summary) {
  Totals totals;
  for (const StateSummary& state : summary.states) {
    totals.bytes += state.bytes;
    if (state.key != "step") ++totals.dtypes[std::string(dtype_name(state.dtype))];
    if (state.key != kWeightKey) continue;
    totals.parameters.insert(state.parameter);
    totals.elements += numel(state.sizes);
  }
  return totals;
}

std::string place_text(const ParallelPlace& place) {
  return fmt::format("{}.{}", place.tensor.rank, place.expert.rank);
}

std::vector<std::vector<std::string>> head_rows(const CheckpointSummary& summary) {
  const Manifest& manifest = summary.checkpoint.manifest;
  const Totals totals = totals_of(summary);
  std::vector<std::string> dtypes;
  for (const auto& [name, count] : totals.dtypes) dtypes.push_back(name);
  return {
      {"checkpoint", summary.checkpoint.path},
      {"layout", has_shards(manifest) ? "shards" : "universal"},
      {"world", has_shards(manifest) ? fmt::format("{} data-parallel ranks saved; any number loads",
                                                   manifest.data_size)
                                     : "whole tensors; any number of ranks loads"},
      {"tensor parallel", fmt::format("{}", manifest.tensor_size)},
      {"expert parallel", fmt::format("{}", manifest.expert_size)},
      {"stage", "any: a checkpoint is of no stage"},
      {"dtype", fmt::format("{}", fmt::join(dtypes, ", "))},
      {"steps", fmt::format("{} of the engine ({} skipped), {} of the optimizer",
                            manifest.counters.global_steps, manifest.counters.skipped_steps,
                            fmt::join(summary.steps, ", "))},
      {"loss scale", fmt::format("{}", manifest.loss_scaler.scale)},
      {"scheduler", manifest.scheduler ? manifest.scheduler->type : "none"},
      {"groups", fmt::format("{}", manifest.groups.size())},
      {"parameters", fmt::format("{} with {} elements", totals.parameters.size(), totals.elements)},
      {"bytes", fmt::format("{}", totals.bytes)}};
}

}  // namespace

Result<CheckpointSummary> summarize_checkpoint(RangedFileSystem& files, const std::string& folder,
                                               const std::string& tag) {
  auto found = read_manifest_in(files, folder, tag);
  if (!found) return tl::unexpected(found.error());
  const auto parts = read_stored_parts(files, *found);
  if (!parts) return tl::unexpected(parts.error());
  CheckpointSummary summary{.checkpoint = std::move(*found), .states = {}, .steps = {}};
  std::set<std::int64_t> steps;
  for (const StoredPart& part : *parts) {
    for (const auto& [name, count] : part.steps) steps.insert(count);
    for (const StoredState& state : part.states) {
      auto of = summarize(files, summary.checkpoint.path, state);
      if (!of) return tl::unexpected(of.error());
      summary.states.push_back(std::move(*of));
      if (state.key != "step") continue;
      const auto step = step_of(files, summary.checkpoint.path, state);
      if (!step) return tl::unexpected(step.error());
      steps.insert(*step);
    }
  }
  summary.steps.assign(steps.begin(), steps.end());
  return summary;
}

std::string text_of(const CheckpointSummary& summary, const Palette& palette) {
  const Manifest& manifest = summary.checkpoint.manifest;
  const bool has_places = manifest.tensor_size > 1 || manifest.expert_size > 1;
  std::vector<std::vector<std::string>> rows = {{"parameter", "state", "shape", "dtype", "bytes"}};
  if (has_places) rows.front().insert(rows.front().begin(), "part");
  for (const StateSummary& state : summary.states) {
    if (state.key == "step") continue;
    std::vector<std::string> row = {escaped_name(state.parameter), state.key,
                                    shape_text(state.sizes), std::string(dtype_name(state.dtype)),
                                    fmt::format("{}", state.bytes)};
    if (has_places) row.insert(row.begin(), place_text(state.place));
    rows.push_back(std::move(row));
  }
  return palette.title("checkpoint") + "\n" + table_text(head_rows(summary)) +
         palette.title("tensors") + "\n" + table_text(rows);
}

std::string json_of(const CheckpointSummary& summary) {
  const Manifest& manifest = summary.checkpoint.manifest;
  const Totals totals = totals_of(summary);
  OrderedJson tensors = OrderedJson::array();
  for (const StateSummary& state : summary.states)
    tensors.push_back({{"parameter", state.parameter},
                       {"key", state.key},
                       {"tensor_parallel_rank", state.place.tensor.rank},
                       {"expert_parallel_rank", state.place.expert.rank},
                       {"shape", state.sizes},
                       {"dtype", dtype_name(state.dtype)},
                       {"bytes", state.bytes},
                       {"files", state.files}});
  OrderedJson groups = OrderedJson::array();
  for (const ParameterGroup& group : manifest.groups)
    groups.push_back(
        {{"parameters", group.parameters}, {"hyper_parameters", group.hyper_parameters}});
  OrderedJson document = {{"schema", "zeroproof.checkpoint_inspect/1"},
                          {"checkpoint", summary.checkpoint.path},
                          {"tag", manifest.tag},
                          {"layout", has_shards(manifest) ? "shards" : "universal"}};
  document.update(ranks_json(manifest));
  document.update({{"dtypes", totals.dtypes},
                   {"global_steps", manifest.counters.global_steps},
                   {"micro_steps", manifest.counters.micro_steps},
                   {"skipped_steps", manifest.counters.skipped_steps},
                   {"global_samples", manifest.counters.global_samples},
                   {"optimizer_steps", summary.steps},
                   {"loss_scale", manifest.loss_scaler.scale},
                   {"scheduler", manifest.scheduler ? OrderedJson(manifest.scheduler->type)
                                                    : OrderedJson(nullptr)},
                   {"parameters", totals.parameters.size()},
                   {"elements", totals.elements},
                   {"bytes", totals.bytes},
                   {"groups", std::move(groups)},
                   {"tensors", std::move(tensors)}});
  return document_text(document);
}

}  // namespace zeroproof
