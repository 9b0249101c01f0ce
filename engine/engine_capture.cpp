// An iteration whose device work is captured once and replayed.
#include "engine/engine_core.h"
#include "engine/zero/step_plan.h"
#include "zeroproof/internal/engine/runtime/clip_rule.h"
#include "zeroproof/model/usage_error.h"

namespace zeroproof {

// What the host would have to know, or to do, in the middle of an iteration.
std::string Engine::Core::capture_obstacle() const {
  if (context_.runtime.graphs() == nullptr)
    return "this runtime does its work when it is queued, so there is nothing to capture; the "
           "CUDA runtime captures";
  if (checks_overflow(context_))
    return "a step that looks for overflow waits for the device before it decides: fp16, autocast "
           "to float16, a loss scale of one's own, and /bf16/check_grad_overflow under stages 1 "
           "and 2; train in float32 or bf16 without them";
  if (config_.is_offloaded()) return "offloaded state is not on the device; leave out offload";
  if (learning_rates_.has_schedule())
    return "/scheduler moves the learning rate from step to step, and a replay has that of the "
           "capture; leave out the scheduler";
  if (tracker_.is_backward_running() || has_unreduced_gradients_ || counters_.backwards > 0)
    return "a window of gradients is open; capture from one step to the next";
  return {};
}

Result<void> Engine::Core::capture(const std::function<void()>& iteration) {
  if (const std::string obstacle = capture_obstacle(); !obstacle.empty())
    return fail(ErrorCode::cannot_run, "an iteration cannot be captured: " + obstacle);
  graph_ = nullptr;
  const Counters before = counters_;
  optimizer_->begin_capture();
  context_.events.mark("iteration_captured");
  graph_ = context_.runtime.graphs()->capture(iteration);
  if (counters_.global_steps != before.global_steps + 1 || counters_.backwards != 0) {
    graph_ = nullptr;
    throw UsageError("capture: an iteration ends with its one step; this one took " +
                     std::to_string(counters_.global_steps - before.global_steps));
  }
  captured_ = {.micro_steps = counters_.micro_steps - before.micro_steps,
               .global_steps = 1,
               .global_samples = counters_.global_samples - before.global_samples};
  run_captured();
  return {};
}

void Engine::Core::replay() {
  require(graph_ != nullptr, "replay: no iteration is captured; capture() comes first");
  count_replayed(captured_);
  run_captured();
}

Result<void> Engine::Core::changed_rates(Result<void> change) {
  if (!change) return change;
  optimizer_->set_rates(learning_rates_.groups());
  graph_ = nullptr;
  return {};
}

void Engine::Core::count_replayed(const Counters& of) {
  counters_.micro_steps += of.micro_steps;
  counters_.global_steps += of.global_steps;
  counters_.global_samples += of.global_samples;
  optimizer_->count_replayed_step();
  context_.events.set_steps(counters_.micro_steps, counters_.global_steps);
}

void Engine::Core::run_captured() {
  context_.events.mark("iteration_replayed");
  graph_->replay();
}

double Engine::Core::replayed_grad_norm() const {
  require(graph_ != nullptr, "replayed_grad_norm: no iteration is captured");
  const Span squares = Span::of(context_.captured_squares);
  const double norm = norm_of_squares(context_.kernels().read(context_.compute(), squares).front());
  return norm / context_.loss_scaler.scale();
}

}  // namespace zeroproof
