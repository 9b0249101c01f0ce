#pragma once

#include "engine/precision/gradient_norm.h"
#include "engine/zero/gradient_divisor.h"
#include "engine/zero/zero_context.h"
#include "zeroproof/engine/engine.h"

namespace zeroproof {

// What all ranks decide before an update, in every stage (docs/spec/zero.md 2.19).
struct StepPlan {
  StepOutcome outcome;  // not applied: overflow
  GradientDivisor divisor;
};

// Whether the host has to know of infinities before it can take a step.
bool checks_overflow(const ZeroContext& context);

// Overflow, the loss scale's next value, the norm, the divisor, in this order. A norm that is not
// finite counts as overflow. overflow_at_minimum_scale from the loss scale, which then has not
// changed. Only questions whose answers are needed are asked; every answer is collective. While an
// iteration is captured: norm and divisor on the device, and no overflow.
StepPlan plan_step(ZeroContext& context, const GradientShards& gradient);

// N4: an overflow leaves the loss scale as it is.
bool keeps_scale_after_overflow(const ZeroContext& context);

// H7: upstream's GradScaler under stages 1 to 3.
bool steps_by_group(const ZeroContext& context);

// H7: each group decides about itself, on this rank alone, and moves the scale for the next one;
// what is clipped is scaled. With N4 a norm that is not finite skips the step on all ranks before.
// `norm` is that of the scaled gradients; -1 where it is not finite.
template <class Groups, class GradientOf>
StepOutcome step_groups_independently(ZeroContext& context, Groups& groups, GradientOf gradient_of,
                                      double norm) {
  StepOutcome outcome;
  LossScaler& scaler = context.loss_scaler;
  outcome.has_overflow = norm < 0.0 && keeps_scale_after_overflow(context);
  if (outcome.has_overflow) return outcome;
  outcome.grad_norm = norm / scaler.scale();
  const double clip = unscale_and_clip_divisor(1.0, norm, context.config.gradient_clipping);
  for (auto& group : groups) {
    const bool is_skipped = any_not_finite(context, {gradient_of(group)});
    if (!is_skipped) group.update(gradient_of(group), {scaler.scale() * clip});
    scaler.update(is_skipped);
    outcome.has_overflow = outcome.has_overflow || is_skipped;
  }
  outcome.is_applied = !outcome.has_overflow;
  return outcome;
}

}  // namespace zeroproof
