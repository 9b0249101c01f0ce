#include "props/train/decoder_run.h"

#include <deque>

#include "props/train/engine_target.h"
#include "props/train/model_recorder.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof::train {
namespace {

// Batches of this rank, on its device: the first `count` forwards have them.
std::vector<TensorList> batches_of(const DecoderCell& cell, const Runtime& runtime,
                                   std::int64_t count) {
  std::vector<TensorList> batches;
  for (std::int64_t turn = 0; turn < count; ++turn) {
    batches.push_back(batch_of(cell, turn, {runtime.rank() * cell.batch, cell.batch}));
    for (Tensor& part : batches.back()) part = runtime.ops().place(part.on(runtime.device()));
  }
  return batches;
}

// Measures from the end of one step to the end of the next, as the host sees them. A step waits for
// the norm of its gradients, so that host and device go on in step. A replayed step does not wait:
// the host waits for the step before it. The device is waited for before the first that
// counts and after the last, so that their sum is the device's.
class StepTimer {
 public:
  StepTimer(Runtime& runtime, const DecoderCell& cell, const DecoderRunOptions& options,
            DecoderRank& result)
      : runtime_(runtime),
        options_(options),
        last_step_(cell.steps - 1),
        replays_(cell.uses_cuda_graph),
        result_(result) {
    if (options.is_timed) last_ns_ = now_ns(true);
  }

  void on_step_end(std::int64_t step) {
    if (!options_.is_timed) return;
    if (!replays_) return take(step, step + 1 == options_.warmup_steps || step == last_step_);
    ends_.push_back(runtime_.stream(StreamRole::compute).record());
    if (step > 0) take_oldest(step - 1);
    if (step == last_step_) take_oldest(step);
  }

 private:
  void take_oldest(std::int64_t step) {
    runtime_.stream(StreamRole::compute).synchronize(ends_.front());
    ends_.pop_front();
    take(step, false);
  }
  void take(std::int64_t step, bool waits) {
    const std::int64_t now = now_ns(waits);
    if (step >= options_.warmup_steps) result_.iterations_ns.push_back(now - last_ns_);
    last_ns_ = now;
  }
  std::int64_t now_ns(bool waits) {
    if (waits) runtime_.stream(StreamRole::compute).synchronize();
    return runtime_.clock().now_ns();
  }

  Runtime& runtime_;
  const DecoderRunOptions& options_;
  std::int64_t last_step_;
  bool replays_;
  DecoderRank& result_;
  std::int64_t last_ns_ = 0;
  std::deque<StreamEvent> ends_;  // of steps that the host has not waited for
};

// The steps of one rank. Those that are replayed read their batches where the captured one did, and
// their losses are copied from where it left them.
class DecoderSteps {
 public:
  DecoderSteps(const DecoderCell& cell, Runtime& runtime, Engine& engine)
      : runtime_(runtime),
        engine_(engine),
        forwards_(engine.config().gradient_accumulation_steps),
        batches_(batches_of(cell, runtime, kBatchTurns)) {
    if (cell.uses_cuda_graph) inputs_ = batches_of(cell, runtime, forwards_);
  }

  void take(std::int64_t step) {
    if (inputs_.empty() || step < kEagerSteps) {
      for (std::int64_t i = 0; i < forwards_; ++i) losses_.push_back(train_on(next_batch(0)));
      return;
    }
    for (std::int64_t i = 0; i < forwards_; ++i) feed(i);
    if (step == kEagerSteps)
      capture();
    else
      engine_.replay();
    for (const Tensor& loss : captured_losses_) keep(loss);
  }

  std::vector<double> losses() const {
    std::vector<double> values;
    for (const Tensor& loss : losses_) values.push_back(loss.item());
    return values;
  }

 private:
  const TensorList& next_batch(std::int64_t forward) const {
    return batches_[(losses_.size() + forward) % batches_.size()];
  }

  Tensor train_on(const TensorList& batch) {
    const Tensor loss = engine_.forward(batch)[0];
    engine_.backward(loss);
    engine_.step();
    return loss.detach();
  }

  void capture() {
    const auto captured = engine_.capture([this] {
      for (const TensorList& input : inputs_) captured_losses_.push_back(train_on(input));
    });
    if (!captured) throw ConfigurationRefused(captured.error().text);
  }

  void feed(std::int64_t forward) {
    const TensorList& batch = next_batch(forward);
    const TensorList& input = inputs_[static_cast<std::size_t>(forward)];
    for (std::size_t part = 0; part < batch.size(); ++part) copy(input[part], batch[part]);
  }

  void keep(const Tensor& loss) {
    losses_.push_back(runtime_.memory().allocate(1, loss.dtype()));
    copy(losses_.back(), loss);
  }

  void copy(const Tensor& to, const Tensor& from) {
    runtime_.kernels().copy(runtime_.stream(StreamRole::compute), Span::of(to), Span::of(from));
  }

  Runtime& runtime_;
  Engine& engine_;
  std::int64_t forwards_;  // of a step
  std::vector<TensorList> batches_;
  std::vector<TensorList> inputs_;  // of a captured step; empty: none is
  TensorList captured_losses_;
  TensorList losses_;  // on the device until all steps are done
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
  const auto engine =
      Engine::initialize(autograd, module, config_of(cell), runtime,
                         {.policy = cell.policy, .quirks = cell.quirks, .gathers_ahead = true});
  if (!engine) throw ConfigurationRefused(engine.error().text);
  DecoderSteps steps(cell, runtime, **engine);
  StepTimer timer(runtime, cell, options, result);
  for (std::int64_t step = 0; step < cell.steps; ++step) {
    steps.take(step);
    timer.on_step_end(step);
  }
  result.losses = steps.losses();
  result.memory = runtime.memory().stats(Placement::device);
  if (options.collects_parameters) result.parameters = (*engine)->full_parameters();
}

}  // namespace zeroproof::train
