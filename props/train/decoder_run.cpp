#include "props/train/decoder_run.h"

#include "engine/engine.h"
#include "model/autograd.h"
#include "props/train/engine_target.h"
#include "props/train/model_recorder.h"

namespace zeroproof::train {
namespace {

// The turns of this rank, on its device.
std::vector<TensorList> batches_of(const DecoderCell& cell, const Runtime& runtime) {
  std::vector<TensorList> batches;
  for (std::int64_t turn = 0; turn < kBatchTurns; ++turn) {
    batches.push_back(batch_of(cell, turn, {runtime.rank() * cell.batch, cell.batch}));
    for (Tensor& part : batches.back()) part = runtime.ops().place(part.on(runtime.device()));
  }
  return batches;
}

// Measures from the end of one step to the end of the next, as the host sees them: a step waits for
// the norm of its gradients, so that host and device go on in step. The device is waited for before
// the first that counts and behind the last, so that their sum is the device's.
class StepTimer {
 public:
  StepTimer(Runtime& runtime, const DecoderRunOptions& options, std::int64_t steps,
            DecoderRank& result)
      : runtime_(runtime), options_(options), last_step_(steps - 1), result_(result) {
    if (options.is_timed) last_ns_ = now_ns(true);
  }

  void on_step_end(std::int64_t step) {
    if (!options_.is_timed) return;
    const std::int64_t now = now_ns(step + 1 == options_.warmup_steps || step == last_step_);
    if (step >= options_.warmup_steps) result_.iterations_ns.push_back(now - last_ns_);
    last_ns_ = now;
  }

 private:
  std::int64_t now_ns(bool waits) {
    if (waits) runtime_.stream(StreamRole::compute).synchronize();
    return runtime_.clock().now_ns();
  }

  Runtime& runtime_;
  const DecoderRunOptions& options_;
  std::int64_t last_step_;
  DecoderRank& result_;
  std::int64_t last_ns_ = 0;
};

ModelRecorder* recorder_of(const DecoderRunOptions& options, int rank) {
  return options.recorders.empty() ? nullptr : options.recorders.at(static_cast<std::size_t>(rank));
}

}  // namespace

void run_decoder_rank(const DecoderCell& cell, Runtime& runtime, const DecoderRunOptions& options,
                      DecoderRank& result) {
  ModelRecorder* const recorder = recorder_of(options, runtime.rank());
  Autograd autograd(runtime.ops(), recorder);
  nn::Decoder module(cell.sizes, cell.seed);
  if (recorder) recorder->on_model(autograd, module, "");
  const ZeroConfig config = config_of(cell);
  const auto engine = Engine::initialize(autograd, module, config, runtime,
                                         {.policy = cell.policy, .quirks = cell.quirks});
  if (!engine) throw ConfigurationRefused(engine.error().text);
  const std::vector<TensorList> batches = batches_of(cell, runtime);
  TensorList losses;
  StepTimer timer(runtime, options, cell.steps, result);
  for (std::int64_t step = 0; step < cell.steps; ++step) {
    for (std::int64_t i = 0; i < config.gradient_accumulation_steps; ++i) {
      const Tensor loss = (*engine)->forward(batches[losses.size() % batches.size()])[0];
      losses.push_back(loss.detach());
      (*engine)->backward(loss);
      (*engine)->step();
    }
    timer.on_step_end(step);
  }
  for (const Tensor& loss : losses) result.losses.push_back(loss.item());
  result.memory = runtime.memory().stats(Placement::device);
  if (options.collects_parameters) result.parameters = (*engine)->full_parameters();
}

}  // namespace zeroproof::train
