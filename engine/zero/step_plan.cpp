#include "engine/zero/step_plan.h"

#include <algorithm>

#include "engine/precision/gradient_norm.h"

namespace zeroproof {
namespace {

StepPlan plan_captured(ZeroContext& context, const Tensor& squares) {
  StepPlan plan;
  plan.outcome.is_applied = true;
  context.captured_squares = squares;
  const ClipRule rule{.scale = context.loss_scaler.scale(),
                      .clip = context.config.gradient_clipping};
  plan.divisor.number = rule.scale;
  if (rule.clip <= 0.0) return plan;
  plan.divisor.reciprocal = context.runtime.memory().allocate(1, DType::float64);
  context.kernels().clip_factor(context.compute(), Span::of(plan.divisor.reciprocal),
                                Span::of(squares), rule);
  return plan;
}

}  // namespace

// bf16 gradients have the range of float32: stages 1 and 2 look at them if told to, others do not.
bool checks_overflow(const ZeroContext& context) {
  const ZeroConfig& config = context.config;
  const bool is_first = config.stage == 1 && !context.departs("T46"_bug);
  const bool is_told = config.bf16.check_grad_overflow || context.departs("S55"_bug);
  const bool checks_bf16 = config.bf16.enabled && is_told && (is_first || config.stage == 2);
  if (context.departs("V15"_bug)) return checks_bf16 || context.loss_scaler.is_dynamic();
  return checks_bf16 || context.loss_scaler.kind() != LossScalerKind::none;
}

// A step whose norm is not finite can be neither clipped nor applied. 0.19.8 skips it too; earlier
// releases apply it as it is. A loss scale, or bf16 in stages 1 and 2, has its own overflow check;
// bf16 without check_grad_overflow asks for the step.
bool rejects_norm(const ZeroContext& context, double norm) {
  const ZeroConfig& config = context.config;
  const bool has_own_check = config.stage == 1 || config.stage == 2;
  const bool is_left_to_bf16 =
      config.bf16.enabled && (has_own_check || !config.bf16.check_grad_overflow);
  const bool is_scaled = context.loss_scaler.kind() != LossScalerKind::none;
  const bool is_older = context.is_upstream() && !context.has(Quirk::n4_overflow_keeps_scale);
  return norm < 0.0 && !is_left_to_bf16 && !is_scaled && !is_older;
}

// N4: upstream returns before the GradScaler learns of the overflow.
bool keeps_scale_after_overflow(const ZeroContext& context) {
  return context.config.stage > 0 && context.has(Quirk::n4_overflow_keeps_scale) &&
         context.loss_scaler.kind() == LossScalerKind::grad_scaler;
}

bool steps_by_group(const ZeroContext& context) {
  return context.config.stage > 0 && context.has(Quirk::h7_autocast_clips_scaled) &&
         context.loss_scaler.kind() == LossScalerKind::grad_scaler;
}

StepPlan plan_step(ZeroContext& context, const StepQuestions& ask) {
  if (context.is_captured()) return plan_captured(context, ask.squares());
  StepPlan plan;
  plan.outcome.has_overflow = checks_overflow(context) && ask.overflows();
  const double scale = context.loss_scaler.scale();
  if (context.departs("U14"_bug) && plan.outcome.has_overflow) return plan;
  const bool is_moved = context.departs("T93"_bug) && context.config.stage > 0;  // by its own share
  const bool is_kept = plan.outcome.has_overflow && keeps_scale_after_overflow(context);
  if (!is_moved && !is_kept) context.loss_scaler.update(plan.outcome.has_overflow);
  const bool is_behind_skipped = context.has_skipped_step && context.departs("Z35"_bug);
  context.has_skipped_step = plan.outcome.has_overflow;
  const bool has_no_scale = context.loss_scaler.kind() == LossScalerKind::none;
  const bool is_told_alone = context.departs("R54"_bug) && has_no_scale;  // none to lower
  const bool is_unscaled_first =  // for clipping, which forgets what it found
      context.departs("S80"_bug) && context.config.gradient_clipping > 0.0 &&
      context.loss_scaler.kind() == LossScalerKind::grad_scaler;
  if (plan.outcome.has_overflow && !is_told_alone && !is_unscaled_first) return plan;
  // Nothing is clipped by it.
  const bool is_unasked = context.departs("T32"_bug) && context.config.gradient_clipping <= 0.0;
  const double norm_scaled = is_unasked ? 0.0 : ask.norm();
  if (rejects_norm(context, norm_scaled)) {
    plan.outcome.has_overflow = context.has_skipped_step = true;
    return plan;
  }
  const double used =
      context.has(Quirk::h6_unscale_with_updated_scale) ? context.loss_scaler.scale() : scale;
  // With H6 stage 3 tells the norm by the updated scale as well.
  if (!is_unasked)
    plan.outcome.grad_norm = norm_scaled / (context.config.stage == 3 ? used : scale);
  if (context.departs("S45"_bug) && context.config.gradient_clipping <= 0.0)
    plan.outcome.grad_norm = norm_scaled;  // clipping alone unscales it
  plan.outcome.is_applied = true;
  const bool leaves_unclipped = context.departs("C17"_bug) && context.config.bf16.enabled;
  const double clip =
      leaves_unclipped || is_behind_skipped ? 0.0 : context.config.gradient_clipping;
  double& divisor = plan.divisor.number;
  const LossScalerKind kind = context.loss_scaler.kind();
  const bool is_callers = kind == LossScalerKind::external || kind == LossScalerKind::custom;
  const bool is_left_scaled = context.departs("R07"_bug) && is_callers;  // who scaled unscales
  divisor = unscale_and_clip_divisor(is_left_scaled ? 1.0 : used, norm_scaled, clip);
  if (context.departs("R44"_bug) && clip > 0.0)  // the norm is that of the scaled gradients
    divisor = used * unscale_and_clip_divisor(1.0, norm_scaled, clip);
  if (context.departs("U15"_bug) && divisor > used) divisor /= used;
  if (context.departs("C14"_bug) && clip > 0.0)
    divisor = std::min(used, norm_scaled / clip);  // the other way round
  const bool has_phantom_scale =
      context.departs("C07"_bug) && context.config.bf16.enabled && context.config.stage == 0;
  if (has_phantom_scale) divisor *= 65536.0;
  if (context.departs("A00"_bug)) divisor *= 2.0;
  if (context.departs("T41"_bug) && clip > 0.0)  // of what the update takes
    plan.outcome.grad_norm = std::min(*plan.outcome.grad_norm, clip);
  return plan;
}

}  // namespace zeroproof
