// An iteration whose device work is captured once and replayed.
#include "engine/engine_core.h"
#include "engine/zero/step_plan.h"
#include "zeroproof/internal/engine/runtime/clip_rule.h"
#include "zeroproof/model/usage_error.h"

namespace zeroproof {

// What the host would have to know, or to do, in the middle of an iteration.
std::string Engine::Core::capture_obstacle() const {
  if (context.runtime.graphs() == nullptr)
    return "this runtime does its work when it is queued, so there is nothing to capture; the "
           "CUDA runtime captures";
  if (checks_overflow(context))
    return "a step that looks for overflow waits for the device before it decides: fp16, autocast "
           "to float16, a loss scale of one's own, and /bf16/check_grad_overflow under stages 1 "
           "and 2; train in float32 or bf16 without them";
  if (config.is_offloaded()) return "offloaded state is not on the device; leave out offload";
  if (learning_rates.has_schedule())
    return "/scheduler moves the learning rate from step to step, and a replay has that of the "
           "capture; leave out the scheduler";
  if (running_ > 0 || has_unreduced_gradients_ || counters.backwards > 0)
    return "a window of gradients is open; capture from one step to the next";
  return {};
}

Result<void> Engine::Core::capture(const std::function<void()>& iteration) {
  if (const std::string obstacle = capture_obstacle(); !obstacle.empty())
    return fail(ErrorCode::cannot_run, "an iteration cannot be captured: " + obstacle);
  graph_ = nullptr;
  const Counters before = counters;
  optimizer->begin_capture();
  context.events.mark("iteration_captured");
  graph_ = context.runtime.graphs()->capture(iteration);
  if (counters.global_steps != before.global_steps + 1 || counters.backwards != 0) {
    graph_ = nullptr;
    throw UsageError("capture: an iteration ends with its one step; this one took " +
                     std::to_string(counters.global_steps - before.global_steps));
  }
  captured_ = {.micro_steps = counters.micro_steps - before.micro_steps,
               .global_steps = 1,
               .global_samples = counters.global_samples - before.global_samples};
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
  optimizer->set_rates(learning_rates.groups());
  graph_ = nullptr;
  return {};
}

void Engine::Core::count_replayed(const Counters& of) {
  counters.micro_steps += of.micro_steps;
  counters.global_steps += of.global_steps;
  counters.global_samples += of.global_samples;
  optimizer->count_replayed_step();
  context.events.set_steps(counters.micro_steps, counters.global_steps);
}

void Engine::Core::run_captured() {
  context.events.mark("iteration_replayed");
  graph_->replay();
}

double Engine::Core::replayed_grad_norm() const {
  require(graph_ != nullptr, "replayed_grad_norm: no iteration is captured");
  const Span squares = Span::of(context.captured_squares);
  const double norm = norm_of_squares(context.kernels().read(context.compute(), squares).front());
  return norm / context.loss_scaler.scale();
}

}  // namespace zeroproof
