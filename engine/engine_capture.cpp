// An iteration whose device work is captured once and replayed.
#include "engine/engine_core.h"
#include "zeroproof/model/usage_error.h"

namespace zeroproof {

// What the host would have to know, or to do, in the middle of an iteration.
std::string Engine::Core::capture_obstacle() const {
  if (std::string obstacle = captured_.obstacle(); !obstacle.empty()) return obstacle;
  if (learning_rates_.has_schedule())
    return "/scheduler moves the learning rate from step to step, and a replay has that of the "
           "capture; leave out the scheduler";
  const OptimizerConfig& optimizer = config_.optimizer;
  const bool has_momentum = optimizer.type == OptimizerType::sgd && optimizer.sgd.momentum != 0.0;
  if (has_momentum && counters_.global_steps == counters_.skipped_steps)
    return "the first step of SGD fills its momentum buffers, and each replay would fill them "
           "again; take one step first";
  if (tracker_.is_backward_running() || has_unreduced_gradients_ || counters_.backwards > 0)
    return "a window of gradients is open; capture from one step to the next";
  return {};
}

Result<void> Engine::Core::capture(const std::function<void()>& iteration) {
  if (const std::string obstacle = capture_obstacle(); !obstacle.empty())
    return fail(ErrorCode::cannot_run, "an iteration cannot be captured: " + obstacle);
  captured_.forget();
  optimizer_->begin_capture();
  context_.events.mark("iteration_captured");
  try {
    captured_.capture(iteration, counters_);
  } catch (...) {
    optimizer_->abandon_capture();
    throw;
  }
  captured_.run();
  return {};
}

void Engine::Core::replay() {
  require(captured_.is_captured(), "replay: no iteration is captured; capture() comes first");
  captured_.count(counters_);
  optimizer_->count_replayed_step();
  context_.events.set_steps(counters_.micro_steps, counters_.global_steps);
  captured_.run();
}

Result<void> Engine::Core::changed_rates(Result<void> change) {
  if (!change) return change;
  optimizer_->set_rates(learning_rates_.groups());
  captured_.forget();
  return {};
}

double Engine::Core::replayed_grad_norm() const {
  require(captured_.is_captured(), "replayed_grad_norm: no iteration is captured");
  return captured_.grad_norm();
}

}  // namespace zeroproof
