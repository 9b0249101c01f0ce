// step, boundaries, and blocks that put reductions off (docs/spec/zero.md 2.11 to 2.14).
#include <stdexcept>
#include <utility>

#include "engine/config_marks.h"
#include "engine/engine_core.h"

namespace zeroproof {
namespace {

// A flag for a while.
class ScopedFlag {
 public:
  explicit ScopedFlag(bool& flag) : flag_(flag) { flag_ = true; }
  ~ScopedFlag() { flag_ = false; }
  ScopedFlag(const ScopedFlag&) = delete;
  ScopedFlag& operator=(const ScopedFlag&) = delete;

 private:
  bool& flag_;
};

}  // namespace

bool Engine::Core::is_boundary() const {
  // A pause does not outlast the window.
  if (boundary_override_) return *boundary_override_;
  if (!config_.managed_gradient_accumulation) return is_step_running_;
  return (counters_.micro_steps + 1) % config_.gradient_accumulation_steps == 0;
}

void Engine::Core::set_boundary(bool is_boundary) {
  if (!config_.managed_gradient_accumulation) {
    throw EngineError(EngineErrorId::boundary_set_in_unmanaged_accumulation,
                      "set_gradient_accumulation_boundary needs managed_gradient_accumulation: "
                      "without it step() is the boundary");
  }
  tell_configuration();
  boundary_override_ = is_boundary;
  context_.events.mark(is_boundary ? "gradient_accumulation_boundary:true"
                                   : "gradient_accumulation_boundary:false");
  refresh_boundary();
}

void Engine::Core::refresh_boundary() {
  context_.is_boundary = is_boundary();
}

StepOutcome Engine::Core::step() {
  const Events::Call call(context_.events, "engine.step");
  if (context_.is_no_sync || context_.is_coalescing)
    throw EngineError(EngineErrorId::step_inside_no_sync,
                      "step() inside no_sync or coalesce_grad_reduction");
  // Stage 0 has a policy that is never asked, and its own backwards alone. H1 leaves them running.
  const bool is_inside =
      is_exact() && tracker_.is_backward_running() && !context_.upstream.abort_leaks_state;
  const bool is_unreduced = is_zero() ? policy_->refuses_step() : has_unreduced_gradients_;
  if (is_incomplete_ || is_inside || is_unreduced) {
    throw EngineError(EngineErrorId::incomplete_backward,
                      "step() in the middle of a backward, or with an aborted backward: its "
                      "gradients are incomplete");
  }
  StepOutcome outcome;
  {
    const ScopedFlag running(is_step_running_);
    if (!config_.managed_gradient_accumulation) {
      refresh_boundary();
      optimizer_->finalize_unmanaged();
    }
    if (is_boundary()) take_model_step(outcome);
  }
  ++counters_.micro_steps;
  context_.events.set_steps(counters_.micro_steps, counters_.global_steps);
  return outcome;
}

void Engine::Core::take_model_step(StepOutcome& outcome) {
  const Events::Call call(context_.events, "engine.take_model_step");
  outcome = optimizer_->step();
  mark_step(context_, {.has_overflow = outcome.has_overflow,
                       .grad_norm = outcome.grad_norm,
                       .loss_scale = context_.loss_scaler.scale()});
  optimizer_->zero_grad();
  if (!outcome.has_overflow && learning_rates_.has_schedule()) {
    learning_rates_.step();
    optimizer_->set_rates(learning_rates_.groups());
  }
  ran_epilogue_ = false;
  has_scaled_gradients_ = false;
  ++counters_.global_steps;
  if (outcome.has_overflow) ++counters_.skipped_steps;
  const std::int64_t micro_batches = config_.managed_gradient_accumulation
                                         ? config_.gradient_accumulation_steps
                                         : counters_.backwards;
  counters_.global_samples +=
      config_.train_micro_batch_size_per_gpu * context_.data.size() * micro_batches;
  counters_.backwards = 0;
}

void Engine::Core::zero_grad() {
  if (std::exchange(has_unreduced_gradients_, false)) context_.events.mark("gradients_abandoned");
  const Events::Call call(context_.events, "engine.zero_grad");
  policy_->on_zero_grad();
  has_scaled_gradients_ = false;
  if (!policy_->demands_restart()) is_incomplete_ = false;
  optimizer_->zero_grad();
  ran_epilogue_ = false;  // or the next forward would count a micro-step (docs/spec/zero.md 2.18)
}

void Engine::Core::no_sync(const std::function<void()>& body) {
  const Events::Call call(context_.events, "engine.no_sync");
  if (config_.stage >= 2) {
    throw EngineError(EngineErrorId::no_sync_not_allowed,
                      "no_sync is not possible with ZeRO stage " + std::to_string(config_.stage) +
                          ": gradients are partitioned in every backward");
  }
  if (context_.is_no_sync || context_.is_coalescing)
    throw EngineError(EngineErrorId::no_sync_not_allowed,
                      "no_sync inside no_sync or coalesce_grad_reduction");
  const ScopedFlag inside(context_.is_no_sync);
  body();
}

void Engine::Core::coalesce(const std::function<void()>& body) {
  const Events::Call call(context_.events, "engine.coalesce_grad_reduction");
  const auto refuse = [](const std::string& why) {
    throw EngineError(EngineErrorId::coalesce_not_allowed, "coalesce_grad_reduction " + why);
  };
  if (!config_.managed_gradient_accumulation) refuse("needs managed_gradient_accumulation");
  if (config_.stage == 0)
    refuse("needs ZeRO stage 1, 2 or 3; the optimizer wrapper does not have it");
  if (context_.is_no_sync || context_.is_coalescing) refuse("is nested in no_sync or in itself");
  // Everything that was added is reduced at the end, also when the body threw
  // (docs/spec/zero.md 2.13); not so when something failed below: that may be this rank's own, and
  // the others would not come.
  const auto leave = [&] { context_.is_coalescing = false; };
  const auto flush = [&] {
    leave();
    context_.is_boundary = true;
    context_.events.mark("gradient_accumulation_boundary:true");
    optimizer_->flush_coalesced();
    refresh_boundary();
    context_.events.mark(!boundary_override_   ? "gradient_accumulation_boundary:auto"
                         : *boundary_override_ ? "gradient_accumulation_boundary:true"
                                               : "gradient_accumulation_boundary:false");
  };
  context_.is_coalescing = true;
  try {
    body();
  } catch (const RuntimeFault&) {
    leave();
    refresh_boundary();
    throw;
  } catch (...) {
    flush();
    throw;
  }
  flush();
}

}  // namespace zeroproof
