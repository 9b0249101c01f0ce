#include "engine/zero/flat_optimizer.h"

#include <algorithm>

#include "engine/precision/gradient_norm.h"

namespace zeroproof {

FlatOptimizer::FlatOptimizer(ZeroContext& context, int ranks, int rank)
    : context_(context),
      slots_(context.parameters.size()),
      accumulated_(context.parameters.size()) {
  std::vector<std::vector<ZeroParameter*>> members;
  for (ZeroParameter& parameter : context.parameters) {
    if (parameter.group < 0) continue;
    const auto group = static_cast<std::size_t>(parameter.group);
    if (members.size() <= group) members.resize(group + 1);
    members[group].push_back(&parameter);
  }
  for (std::vector<ZeroParameter*>& parameters : members) {
    if (parameters.empty()) continue;
    FlatGroup& group = groups_.emplace_back(context, std::move(parameters), ranks, rank);
    for (std::size_t i = 0; i < group.parameters().size(); ++i)
      slots_[static_cast<std::size_t>(group.parameters()[i]->id.value)] = {&group, i};
  }
}

// A whole backward's gradient leaves .grad, so that one that fails can be told from those before.
void FlatOptimizer::collect_gradients() {
  const DType dtype = context_.config.accumulation_dtype();
  for (ZeroParameter& parameter : context_.parameters) {
    const Tensor grad = parameter.tensor.grad();
    if (slot(parameter).group == nullptr || !grad.is_defined()) continue;
    Tensor& sum = accumulated(parameter);
    if (sum.is_defined()) {
      context_.kernels().add(context_.compute(), Span::of(sum), Span::of(grad));
    } else if (grad.dtype() == dtype) {
      sum = grad;
    } else {
      sum = context_.runtime.memory().allocate(grad.numel(), dtype);
      context_.kernels().copy(context_.compute(), Span::of(sum), Span::of(grad));
    }
    parameter.tensor.set_grad({});
  }
}

bool FlatOptimizer::checks_overflow() const {
  const ZeroConfig& config = context_.config;
  const LossScalerKind kind = context_.loss_scaler.kind();
  return kind != LossScalerKind::none ||
         (config.bf16.enabled && config.bf16.check_grad_overflow && config.stage > 0);
}

std::vector<Span> FlatOptimizer::windows() {
  std::vector<Span> spans;
  for (FlatGroup& group : groups_) spans.push_back(step_gradient(group));
  return spans;
}

// zero_semantics 2.19: overflow, scale, norm, update.
StepOutcome FlatOptimizer::step() {
  if (is_grad_scaler_upstream()) return step_by_group();
  StepOutcome outcome;
  outcome.has_overflow = checks_overflow() && overflows();
  const double scale = context_.loss_scaler.scale();
  context_.loss_scaler.update(outcome.has_overflow);
  if (outcome.has_overflow) {
    drop_gradients();
    return outcome;
  }
  const double norm_scaled = norm();
  outcome.grad_norm = norm_scaled / scale;
  const double used =
      context_.has(Quirk::h6_unscale_with_updated_scale) ? context_.loss_scaler.scale() : scale;
  const double divisor =
      unscale_and_clip_divisor(used, norm_scaled, context_.config.gradient_clipping);
  for (FlatGroup& group : groups_) update(group, divisor);
  gather_parameters();
  drop_gradients();
  outcome.is_applied = true;
  return outcome;
}

bool FlatOptimizer::is_grad_scaler_upstream() const {
  return context_.config.stage > 0 && context_.has(Quirk::h7_autocast_clips_scaled) &&
         context_.loss_scaler.kind() == LossScalerKind::grad_scaler;
}

// H7: each group decides about itself, on this rank alone, and moves the scale for the next one;
// what is clipped is scaled.
StepOutcome FlatOptimizer::step_by_group() {
  StepOutcome outcome;
  LossScaler& scaler = context_.loss_scaler;
  const double norm_scaled = norm();
  outcome.grad_norm = norm_scaled / scaler.scale();
  const double clip = unscale_and_clip_divisor(1.0, norm_scaled, context_.config.gradient_clipping);
  for (FlatGroup& group : groups_) {
    const bool is_skipped = any_not_finite(context_, {step_gradient(group)});
    if (!is_skipped) update(group, scaler.scale() * clip);
    scaler.update(is_skipped);
    outcome.has_overflow = outcome.has_overflow || is_skipped;
  }
  gather_parameters();
  drop_gradients();
  outcome.is_applied = !outcome.has_overflow;
  return outcome;
}

void FlatOptimizer::update(FlatGroup& group, double divisor) {
  group.optimizer().step(context_.compute(), Span::of(group.master()), step_gradient(group),
                         divisor);
  group.write_back();
}

void FlatOptimizer::drop_gradients() {
  for (FlatGroup& group : groups_) {
    group.drop_window();
    group.drop_pending();
  }
  std::ranges::fill(accumulated_, Tensor());
  clear_grads();
}

void FlatOptimizer::zero_grad() {
  drop_gradients();
}

void FlatOptimizer::clear_grads() {
  for (const ZeroParameter& parameter : context_.parameters) parameter.tensor.set_grad({});
}

}  // namespace zeroproof
