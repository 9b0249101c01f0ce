#include "props/train/window_forwards.h"

#include <cmath>
#include <limits>

#include "props/train/detour.h"
#include "props/train/user_calls.h"
#include "props/train/weight_visit.h"
#include "props/train/window_records.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {
namespace {

double spike_of(const MicroSpec& micro) {
  constexpr double kOverflow = std::numeric_limits<double>::infinity();
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  return micro.overflow_kind == 0 ? kOverflow : micro.overflow_kind == 1 ? -kOverflow : kNone;
}

}  // namespace

WindowForwards::WindowForwards(const WindowContext& window, const Parts& parts)
    : spec_(window.spec),
      pass_(window.pass),
      window_(window),
      inputs_(parts.inputs),
      repeated_(parts.repeated),
      hook_(parts.hook) {}

TensorList WindowForwards::run(const MicroSpec& micro) {
  arm(micro);
  const TensorList inputs = inputs_.next();
  TensorList losses = [&] {
    const RepeatedCalls::Armed armed(repeated_, {Shortage::evaluation, Shortage::forward});
    return surrounded_forward(spec_, micro, pass_, inputs);
  }();
  losses.resize(static_cast<std::size_t>(spec_.heads));
  record_casts(window_, "bytes of casts", true);
  for (const Tensor& loss : losses) record_loss(pass_, loss);
  const auto interrupt = static_cast<Interrupt>(micro.interrupt);
  const bool is_joined = interrupt != Interrupt::other && interrupt != Interrupt::fails &&
                         interrupt != Interrupt::steps && interrupt != Interrupt::breaks;
  if (spec_.engines == 2 && spec_.takes_turns == 0 && is_joined)
    losses = {joined(losses.at(0), inputs)};
  if (micro.has_bypass != 0)
    losses.back() = add(pass_.autograd(), losses.back(), bypass(micro, inputs));
  if (spec_.is_lifted != 0) losses.back() = add(pass_.autograd(), losses.back(), CaseSpec::kLift);
  if (spec_.has_grad_scaler != 0)
    for (Tensor& loss : losses)
      loss = mul(pass_.autograd(), to(pass_.autograd(), loss, DType::float32),
                 1.0 / CaseSpec::kGradScale);
  return losses;
}

TensorList WindowForwards::run_unscaled() {
  is_unscaled_ = true;
  TensorList losses = run(MicroSpec());
  is_unscaled_ = false;
  return losses;
}

void WindowForwards::run_plainly(const MicroSpec& micro) {
  arm(micro);
  record_loss(pass_, pass_.target().forward(0, inputs_.next()).at(0));
}

Tensor WindowForwards::run_second(const MicroSpec& micro) {
  arm(micro);
  Tensor loss = pass_.target().forward(1, inputs_.next()).at(0);
  record_loss(pass_, loss);
  return loss;
}

void WindowForwards::arm(const MicroSpec& micro) {
  const bool overflows = is_rank_of_world(spec_, pass_, micro.overflow_rank);
  for (std::size_t engine = 0; engine < static_cast<std::size_t>(spec_.engines); ++engine)
    model_of(pass_, engine)
        .arm({.skips = skips_here(micro, pass_) ? micro.skips : 0,
              .aborts = failure_.aborts,
              .fails_at_weight = failure_.is_at_weight,
              .overflow = engine == 0 ? overflow_of(micro) : 0,
              .spike = overflows ? spike_of(micro) : 1.0,
              .expert = inputs_.next_expert(),
              .throws = engine == 0 ? failure_.throws : 0,
              .interrupts = engine == 0 && is_interrupted_ ? micro.interrupt_at : 0,
              .on_interrupt = [this, micro] { hook_.run(micro); },
              .detours = engine == 0 && has_detour(micro) ? micro.detour_at - 1 : 0,
              .on_detour = [this,
                            micro] { take_detour_at(spec_, pass_, micro, DetourPlace::forward); },
              .on_end =
                  [this] { record_casts(window_, "bytes of casts in stage 3", spec_.stage == 3); },
              .is_unread = leaves_unread(micro, pass_)});
}

bool WindowForwards::has_detour(const MicroSpec& micro) const {
  return is_interrupted_ && micro.detour != 0 && place_of(micro) == DetourPlace::forward;
}

int WindowForwards::overflow_of(const MicroSpec& micro) const {
  return window_.is_lost && micro.lost_overflow != 0 ? micro.lost_overflow : micro.overflow;
}

// A term of the loss that reaches layer 0 past the engine's forward.
Tensor WindowForwards::bypass(const MicroSpec& micro, const TensorList& inputs) {
  const GeneratedModel& model = model_of(pass_, 0);
  if (static_cast<Bypass>(micro.has_bypass) == Bypass::layer)
    return model.bypass(pass_.autograd(), inputs);
  Tensor term;
  with_whole_weights(spec_, pass_, {model.bypassed_weight()},
                     [&] { term = model.bypass_of_weight(pass_.autograd(), inputs); });
  return term;
}

// The loss of two engines.
Tensor WindowForwards::joined(const Tensor& first, const TensorList& inputs) {
  TrainTarget& target = pass_.target();
  Tensor a = first;
  Tensor b = target.forward(1, inputs).at(0);
  b = mul(pass_.autograd(), b, std::ldexp(1.0, spec_.uses() / 2));
  const bool is_scaled = pass_.autograd().is_grad_enabled() && !is_unscaled_;
  if (is_scaled && pass_.is_manual() && target.needs_scaler(0)) a = target.scale(0, a, false);
  if (is_scaled && (pass_.is_manual() || spec_.scales_second != 0) && target.needs_scaler(1))
    b = target.scale(1, b, false);
  return add(pass_.autograd(), a, b);
}

}  // namespace zeroproof::train
