// An iteration whose device work is captured once and replayed.
#include "engine/engine_core.h"
#include "engine/runtime/clip_rule.h"
#include "engine/zero/step_plan.h"
#include "model/check.h"

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
  ZP_CHECK(counters.global_steps == before.global_steps + 1 && counters.backwards == 0,
           "a captured iteration ends with its one step");
  captured_ = {.micro_steps = counters.micro_steps - before.micro_steps,
               .global_steps = 1,
               .global_samples = counters.global_samples - before.global_samples};
  run_captured();
  return {};
}

void Engine::Core::replay() {
  ZP_CHECK(graph_ != nullptr, "a replay of an iteration that was not captured");
  count_replayed(captured_);
  run_captured();
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
  ZP_CHECK(graph_ != nullptr, "the norm of a step that was not captured");
  const Span squares = Span::of(context.captured_squares);
  const double norm = norm_of_squares(context.kernels().read(context.compute(), squares).front());
  return norm / context.loss_scaler.scale();
}

}  // namespace zeroproof
