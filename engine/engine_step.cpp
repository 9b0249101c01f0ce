// step, boundaries, and blocks that put reductions off (zero_semantics 2.11 to 2.14).
#include <stdexcept>
#include <utility>

#include "engine/config_marks.h"
#include "engine/engine_core.h"

namespace zeroproof {
namespace {

// A flag for a while.
class Raised {
 public:
  explicit Raised(bool& flag) : flag_(flag) { flag_ = true; }
  ~Raised() { flag_ = false; }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

 private:
  bool& flag_;
};

}  // namespace

bool Engine::Core::is_boundary() const {
  // A pause does not outlast the window.
  const bool is_left = context.departs("T36"_bug) && boundary_override_ == false;
  if (boundary_override_ && !is_left) return *boundary_override_;
  if (!config.managed_gradient_accumulation) return is_step_running_;
  return (counters.micro_steps + 1) % config.gradient_accumulation_steps == 0;
}

void Engine::Core::set_boundary(bool is_boundary) {
  const bool is_let_in = context.departs("R28"_bug) && !is_boundary;  // step() is one all the same
  if (!config.managed_gradient_accumulation && !is_let_in) {
    throw EngineError(EngineErrorId::e9,
                      "set_gradient_accumulation_boundary needs managed_gradient_accumulation: "
                      "without it step() is the boundary");
  }
  boundary_override_ = is_boundary;
  context.events.mark(is_boundary ? "gradient_accumulation_boundary:true"
                                  : "gradient_accumulation_boundary:false");
  refresh_boundary();
}

StepOutcome Engine::Core::step() {
  const Events::Call call(context.events, "engine.step");
  const bool is_counted = context.departs("T72"_bug) && !is_boundary();  // updates nothing
  const bool is_coalescing = context.is_coalescing && !context.departs("S59"_bug);
  if ((is_no_sync_ && !is_counted) || is_coalescing)
    throw EngineError(EngineErrorId::e7, "step() inside no_sync or coalesce_grad_reduction");
  // Stage 0 has a policy that nobody asks, and backwards of its own alone. H1 leaves them running.
  const bool is_inside = is_exact() && is_running() && !context.has(Quirk::h1_abort_leaks_state);
  const bool is_let_in = context.departs("T68"_bug) && !is_zero();  // it has no policy to ask
  const bool is_anyones =
      context.departs("S33"_bug) && context.autograd.global().managed_backwards > 0;
  if (must_restart_ || is_anyones || (is_inside && !is_let_in) ||
      (is_zero() && policy->refuses_step())) {
    throw EngineError(EngineErrorId::e23,
                      "step() in the middle of a backward, or with an aborted backward: its "
                      "gradients are incomplete");
  }
  StepOutcome outcome;
  bool is_counted_first = false;
  {
    const Raised running(is_step_running_);
    if (!config.managed_gradient_accumulation) {
      refresh_boundary();
      optimizer->finalize_unmanaged();
    }
    const bool is_last = (counters.micro_steps + 1) % config.gradient_accumulation_steps == 0;
    const bool is_paused = is_last && !is_boundary() && config.managed_gradient_accumulation;
    const bool is_due = is_boundary();
    is_counted_first = context.departs("R84"_bug) && is_due;  // whatever comes of it
    if (is_counted_first) ++counters.micro_steps;
    if (is_due) take_model_step(outcome);
    if (context.departs("R11"_bug)) {  // what the last one did is told until the next
      if (is_boundary()) last_outcome_ = outcome;
      outcome = last_outcome_;
    }
    if (is_paused && context.departs("S04"_bug)) optimizer->zero_grad();  // the window is over
    if (context.departs("B12"_bug)) refresh_boundary();
  }
  if (outcome.grad_norm) last_norm_ = outcome.grad_norm;
  if (context.departs("R02"_bug)) outcome.grad_norm = last_norm_;  // the last one there was
  const bool is_uncounted = outcome.has_overflow && context.departs("Z04"_bug);
  if (!is_uncounted && !is_counted_first) ++counters.micro_steps;
  const std::int64_t more = std::exchange(micro_batch_backwards_, 0) - 1;
  if (context.departs("R06"_bug) && more > 0) counters.micro_steps += more;  // each is one
  context.events.set_steps(counters.micro_steps, counters.global_steps);
  return outcome;
}

void Engine::Core::take_model_step(StepOutcome& outcome) {
  const Events::Call call(context.events, "engine.take_model_step");
  if (context.departs("S17"_bug) && counters.backwards == 0) return;  // no gradient, no update
  const bool is_unchecked = context.loss_scaler.kind() == LossScalerKind::grad_scaler;
  if (context.departs("S95"_bug) && is_unchecked && counters.backwards == 0)
    throw std::logic_error("no inf checks were recorded for this optimizer");
  if (context.departs("T90"_bug) && counters.backwards == 0 && context.loss_scaler.is_dynamic())
    throw std::runtime_error("no inf checks were recorded prior to update");
  const bool is_counted_first = context.departs("R73"_bug);  // whatever comes of it
  if (is_counted_first) ++counters.global_steps;
  const double scale_before = context.loss_scaler.scale();
  outcome = optimizer->step();
  mark_step(context, {.has_overflow = outcome.has_overflow,
                      .grad_norm = outcome.grad_norm,
                      .loss_scale = context.loss_scaler.scale()});
  const bool keeps_skipped = context.departs("S66"_bug) && config.stage < 3;  // no step, no reset
  if (!outcome.has_overflow || !keeps_skipped) optimizer->zero_grad();
  if (!outcome.has_overflow && learning_rates.has_schedule()) {
    learning_rates.step();
    optimizer->set_rates(learning_rates.groups());
  }
  ran_epilogue_ = false;
  if (outcome.is_applied || !context.departs("Y20"_bug)) has_scaled_gradients_ = false;
  if (context.departs("V06"_bug)) boundary_override_.reset();  // it was for this window
  const bool is_uncounted_skip = outcome.has_overflow && context.departs("R29"_bug);
  if (!is_uncounted_skip && !is_counted_first) ++counters.global_steps;
  const bool is_lowered = context.loss_scaler.scale() < scale_before;  // R77: tells of a skip
  if (context.departs("R77"_bug) ? is_lowered : outcome.has_overflow) ++counters.skipped_steps;
  if (context.departs("A31"_bug) && config.stage == 3) remove_gradient_hooks();  // their nodes went
  const bool is_as_configured = context.departs("S41"_bug) || context.departs("S61"_bug);
  const std::int64_t micro_batches = config.managed_gradient_accumulation || is_as_configured
                                         ? config.gradient_accumulation_steps
                                         : counters.backwards;
  const int ranks_per_batch = context.departs("R93"_bug) ? context.tensor.size() : 1;
  const bool is_uncounted = context.departs("Q03"_bug) && outcome.has_overflow;  // trained nothing
  if (!is_uncounted)
    counters.global_samples += config.train_micro_batch_size_per_gpu * context.data.size() *
                               ranks_per_batch * micro_batches;
  if (!context.departs("W06"_bug) || outcome.is_applied) counters.backwards = 0;
}

void Engine::Core::zero_grad() {
  if (context.departs("U25"_bug) && config.managed_gradient_accumulation && !is_boundary())
    return;  // in the middle of a window nobody clears
  if (std::exchange(has_unreduced_gradients_, false)) context.events.mark("gradients_abandoned");
  const Events::Call call(context.events, "engine.zero_grad");
  policy->on_zero_grad();
  if (!context.departs("X07"_bug)) has_scaled_gradients_ = false;
  if (context.departs("Z61"_bug)) is_scale_called_ = false;  // a new window begins
  if (context.departs("S27"_bug)) {  // .grad, and not what has been reduced already
    for (const ZeroParameter& parameter : context.parameters) parameter.tensor.set_grad({});
    return;
  }
  optimizer->zero_grad();
  ran_epilogue_ = false;           // or the next forward would count a micro-step (2.18)
  if (context.departs("S38"_bug))  // the window begins anew
    counters.micro_steps -= counters.micro_steps % config.gradient_accumulation_steps;
}

void Engine::Core::no_sync(const std::function<void()>& body) {
  const int first_refused = context.departs("S22"_bug) ? 1 : 2;  // any stage of ZeRO
  if (config.stage >= first_refused) {
    throw EngineError(EngineErrorId::e6, "no_sync is not possible with ZeRO stage " +
                                             std::to_string(config.stage) +
                                             ": gradients are partitioned in every backward");
  }
  const bool is_nested = is_no_sync_ && !context.departs("X19"_bug);
  if (is_nested || context.is_coalescing)
    throw EngineError(EngineErrorId::e6, "no_sync inside no_sync or coalesce_grad_reduction");
  if (context.departs("B30"_bug) && config.is_offloaded())
    throw std::runtime_error("a gradient on the device for a view on the host");
  if (context.departs("U18"_bug)) {
    is_no_sync_ = true;
    body();
    is_no_sync_ = false;
    return;
  }
  const Raised inside(is_no_sync_);
  body();
}

void Engine::Core::coalesce(const std::function<void()>& body) {
  const Events::Call call(context.events, "engine.coalesce_grad_reduction");
  const auto refuse = [](const std::string& why) {
    throw EngineError(EngineErrorId::e8, "coalesce_grad_reduction " + why);
  };
  if (!config.managed_gradient_accumulation) refuse("needs managed_gradient_accumulation");
  if (config.stage == 0) refuse("needs ZeRO stage 1, 2 or 3; the optimizer wrapper has none of it");
  if (is_no_sync_ || context.is_coalescing) refuse("is nested in no_sync or in itself");
  // Everything that was added is reduced at the end, also when the body threw (2.13); not so when
  // something failed below: that may be this rank's own, and the others would not come.
  const auto leave = [&] { context.is_coalescing = is_in_block_ = false; };
  const auto flush = [&] {
    leave();
    context.is_boundary = true;
    context.events.mark("gradient_accumulation_boundary:true");
    const bool is_forgotten = context.departs("H14a"_bug) && config.has_overlap_comm();
    if (!is_forgotten) optimizer->flush_coalesced();
    if (context.departs("Q15"_bug)) boundary_override_ = true;  // forced for the flush, and left
    refresh_boundary();
    context.events.mark(!boundary_override_   ? "gradient_accumulation_boundary:auto"
                        : *boundary_override_ ? "gradient_accumulation_boundary:true"
                                              : "gradient_accumulation_boundary:false");
  };
  if (context.departs("B26"_bug)) return body();  // the block changes nothing
  if (context.departs("B28"_bug) && options.id.value > 0) return body();  // the outer one's alone
  is_in_block_ = true;
  context.is_coalescing = !context.departs("B27"_bug);
  try {
    body();
  } catch (const RuntimeFault&) {
    leave();
    refresh_boundary();
    throw;
  } catch (...) {
    if (context.departs("V16"_bug)) {
      leave();
    } else {
      flush();
    }
    throw;
  }
  flush();
}

}  // namespace zeroproof
