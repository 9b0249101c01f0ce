#include "engine/captured_iteration.h"

#include "engine/zero/step_plan.h"
#include "zeroproof/internal/engine/runtime/clip_rule.h"
#include "zeroproof/model/usage_error.h"

namespace zeroproof {

std::string CapturedIteration::obstacle() const {
  if (context_.runtime.graphs() == nullptr)
    return "this runtime does its work when it is queued, so it cannot be captured; the "
           "CUDA runtime captures";
  if (checks_overflow(context_))
    return "a step that looks for overflow waits for the device before it decides: fp16, autocast "
           "to float16, a loss scale of one's own, and /bf16/check_grad_overflow under stages 1 "
           "and 2; train in float32 or bf16 without them";
  if (context_.config.is_offloaded())
    return "offloaded state is not on the device; leave out offload";
  return {};
}

void CapturedIteration::capture(const std::function<void()>& iteration,
                                const EngineCounters& counters) {
  const EngineCounters before = counters;
  graph_ = context_.runtime.graphs()->capture(iteration);
  if (counters.global_steps != before.global_steps + 1 || counters.backwards != 0) {
    graph_ = nullptr;
    throw UsageError("capture: an iteration ends with its one step; this one took " +
                     std::to_string(counters.global_steps - before.global_steps));
  }
  counts_ = {.micro_steps = counters.micro_steps - before.micro_steps,
             .global_steps = 1,
             .global_samples = counters.global_samples - before.global_samples};
}

void CapturedIteration::run() {
  context_.events.mark("iteration_replayed");
  graph_->replay();
}

void CapturedIteration::count(EngineCounters& counters) const {
  counters.micro_steps += counts_.micro_steps;
  counters.global_steps += counts_.global_steps;
  counters.global_samples += counts_.global_samples;
}

double CapturedIteration::grad_norm() const {
  const Span squares = Span::of(context_.captured_squares);
  const double norm = norm_of_squares(context_.kernels().read(context_.compute(), squares).front());
  return norm / context_.loss_scaler.scale();
}

}  // namespace zeroproof
