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

// bf16 gradients have the range of float32: stages 1 and 2 check them if configured, others never.
bool checks_overflow(const ZeroContext& context) {
  const ZeroConfig& config = context.config;
  const bool is_first = config.stage == 1;
  const bool checks_bf16 =
      config.bf16.enabled && config.bf16.check_grad_overflow && (is_first || config.stage == 2);
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
  const bool is_older = context.upstream.all && !context.upstream.overflow_keeps_scale;
  return norm < 0.0 && !is_left_to_bf16 && !is_scaled && !is_older;
}

// N4: upstream returns before the GradScaler learns of the overflow.
bool keeps_scale_after_overflow(const ZeroContext& context) {
  return context.config.stage > 0 && context.upstream.overflow_keeps_scale &&
         context.loss_scaler.kind() == LossScalerKind::grad_scaler;
}

bool steps_by_group(const ZeroContext& context) {
  return context.config.stage > 0 && context.upstream.autocast_clips_scaled &&
         context.loss_scaler.kind() == LossScalerKind::grad_scaler;
}

StepPlan plan_step(ZeroContext& context, const GradientShards& gradient) {
  if (context.is_captured()) return plan_captured(context, gradient_squares(context, gradient));
  StepPlan plan;
  plan.outcome.has_overflow = checks_overflow(context) && has_overflow(context, gradient);
  const double scale = context.loss_scaler.scale();
  const bool is_kept = plan.outcome.has_overflow && keeps_scale_after_overflow(context);
  if (!is_kept) context.loss_scaler.update(plan.outcome.has_overflow);
  if (plan.outcome.has_overflow) return plan;
  const double norm_scaled = gradient_norm(context, gradient);
  if (rejects_norm(context, norm_scaled)) {
    plan.outcome.has_overflow = true;
    return plan;
  }
  const double used =
      context.upstream.unscale_with_updated_scale ? context.loss_scaler.scale() : scale;
  // With H6 stage 3 reports the norm by the updated scale as well.
  plan.outcome.grad_norm = norm_scaled / (context.config.stage == 3 ? used : scale);
  plan.outcome.is_applied = true;
  const double clip = context.config.gradient_clipping;
  double& divisor = plan.divisor.number;
  divisor = unscale_and_clip_divisor(used, norm_scaled, clip);
  return plan;
}

}  // namespace zeroproof
