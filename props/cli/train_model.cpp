#include "props/cli/train_model.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "engine/schedule/learning_rates.h"
#include "props/cli/common_flags.h"
#include "props/report/decoder_report.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kMostSequences = 4096;
constexpr std::uint64_t kMostTokens = 1U << 16;
constexpr std::uint64_t kMostLayers = 4096;

Result<std::int64_t> count_of(const std::string& word, std::uint64_t most, const char* flag) {
  const std::string what = fmt::format("train: --{}", flag);
  const auto count = parse_count(word, what);
  if (!count) return tl::unexpected(count.error());
  if (*count < 1 || *count > most)
    return fail(ErrorCode::usage, fmt::format("{} {}: give 1 to {}", what, word, most));
  return static_cast<std::int64_t>(*count);
}

// What is known before anything runs; the engine has more reasons (Engine::capture).
Result<void> check_graph(const train::TrainCell& cell) {
  const auto refuse = [](const std::string& why) {
    return fail(ErrorCode::usage, "train: --cuda-graph: " + why);
  };
  if (!cell.gpus) return refuse("captures what GPUs do; give --runtime cuda");
  if (cell.steps > train::kEagerSteps) return {};
  return refuse(
      fmt::format("the first {} steps run as they are, and the next one is captured; give "
                  "--steps {} or more",
                  train::kEagerSteps, train::kEagerSteps + 1));
}

}  // namespace

void ModelFlags::declare(Flags& flags) {
  flags.begin_group("a decoder in place of a scenario");
  flags.add_value("model", model_,
                  {"NAME", "train a decoder of this size on random tokens", {"tiny", "m267"}});
  flags.add_value("batch", batch_, {"N", "sequences a rank (default 2)"});
  flags.add_value("length", length_, {"N", "tokens a sequence (default 16)"});
  flags.add_switch("time", is_timed_, "print the time of an iteration");
  flags.add_value(
      "attention", attention_,
      {"NAME", "kernels of attention on GPUs: cudnn (default) or own", {"cudnn", "own"}});
  flags.add_switch("cuda-graph", uses_cuda_graph_,
                   "capture an iteration with its hooks on GPUs, and replay it");
  flags.add_value("warmup", warmup_, {"N", "--time: steps before the timed ones (default 0)"});
  flags.add_value("layers", layers_,
                  {"N", "number of layers in place of the model's own, 6 parameters each"});
  flags.add_value("save-initial", initial_,
                  {"FILE", "write the initial weights and the batches as safetensors"});
  flags.add_switch("no-collectives", leaves_out_collectives_,
                   "--time on GPUs: leave out communication, to see its cost");
}

Result<void> ModelFlags::check_alone() const {
  const char* given = !batch_.empty()           ? "batch"
                      : !length_.empty()        ? "length"
                      : !warmup_.empty()        ? "warmup"
                      : !attention_.empty()     ? "attention"
                      : is_timed_               ? "time"
                      : !layers_.empty()        ? "layers"
                      : !initial_.empty()       ? "save-initial"
                      : uses_cuda_graph_        ? "cuda-graph"
                      : leaves_out_collectives_ ? "no-collectives"
                                                : nullptr;
  if (given == nullptr) return {};
  return fail(ErrorCode::usage, fmt::format("train: --{}: only with --model", given));
}

Result<train::DecoderCell> ModelFlags::cell_of(const train::TrainCell& cell,
                                               std::uint64_t seed) const {
  auto sizes = train::decoder_sizes_of(model_);
  if (!sizes) return tl::unexpected(sizes.error());
  if (!layers_.empty()) {
    const auto layers = count_of(layers_, kMostLayers, "layers");
    if (!layers) return tl::unexpected(layers.error());
    sizes->layers = *layers;
  }
  const auto batch = count_of(batch_.empty() ? "2" : batch_, kMostSequences, "batch");
  if (!batch) return tl::unexpected(batch.error());
  const auto length = count_of(length_.empty() ? "16" : length_, kMostTokens, "length");
  if (!length) return tl::unexpected(length.error());
  const bool is_known =
      cell.precision == train::Precision::float32 || cell.precision == train::Precision::bf16;
  if (!is_known)
    return fail(ErrorCode::usage,
                fmt::format("train: --dtype {}: --model trains in float32 or bf16",
                            train::precision_name(cell.precision)));
  if (uses_cuda_graph_)
    if (const auto fits = check_graph(cell); !fits) return tl::unexpected(fits.error());
  if (cell.config)  // one parameter group
    if (const auto rates = LearningRates::make(*cell.config, 1); !rates)
      return fail(ErrorCode::usage, "train: --model with --ds-config: " + rates.error().text);
  return train::DecoderCell{.model = model_,
                            .sizes = *sizes,
                            .stage = cell.stage,
                            .world_size = cell.world_size,
                            .precision = cell.precision,
                            .batch = *batch,
                            .length = *length,
                            .steps = cell.steps,
                            .seed = seed,
                            .policy = cell.policy,
                            .quirks = cell.quirks,
                            .gpus = cell.gpus,
                            .collectives = cell.collectives,
                            .uses_cudnn = attention_ != "own",
                            .job = cell.job,
                            .timeout_ms = cell.timeout_ms,
                            .uses_cuda_graph = uses_cuda_graph_,
                            .config = cell.config};
}

Result<train::DecoderOptions> ModelFlags::options(std::int64_t steps) const {
  train::DecoderOptions options{.is_timed = is_timed_,
                                .leaves_out_collectives = leaves_out_collectives_,
                                .initial_path = initial_};
  if (leaves_out_collectives_ && !is_timed_)
    return fail(ErrorCode::usage, "train: --no-collectives: needs --time");
  if (warmup_.empty()) return options;
  const auto warmup = parse_count(warmup_, "train: --warmup");
  if (!warmup) return tl::unexpected(warmup.error());
  if (!is_timed_ || *warmup >= static_cast<std::uint64_t>(steps))
    return fail(ErrorCode::usage,
                fmt::format("train: --warmup {}: needs --time, and fewer than the {} steps of "
                            "--steps",
                            warmup_, steps));
  options.warmup_steps = static_cast<std::int64_t>(*warmup);
  return options;
}

Result<void> ModelFlags::check_together(const train::DecoderCell& cell,
                                        const train::DecoderOptions& options) {
  if (options.leaves_out_collectives && (!cell.gpus || options.checks_baseline))
    return fail(ErrorCode::usage,
                "train: --no-collectives: times --runtime cuda alone; its numbers are no "
                "training's, so that --check-baseline cannot compare them");
  if (cell.model == "m267" && !cell.gpus)
    return fail(ErrorCode::usage,
                "train: --model m267: the host runtime keeps every number as a double, so that "
                "its weights, gradients and states need more than 10 GB; give --runtime cuda, "
                "or --model tiny");
  return {};
}

VerbResult result_of(train::DecoderReport made, const Session& session) {
  const auto report = std::make_shared<train::DecoderReport>(std::move(made));
  const ExitCode code = report->is_bad() ? ExitCode::falsified : ExitCode::held;
  return VerbResult{.code = code,
                    .text =
                        [report, code, &session] {
                          return session.seed_line() + decoder_text(*report, session.palette) +
                                 session.reproduce_line(code);
                        },
                    .json = [report] { return decoder_json(*report); },
                    .junit = [report] { return std::vector<JUnitCase>{decoder_case(*report)}; }};
}

}  // namespace zeroproof
