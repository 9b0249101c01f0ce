// The update of stage 3 (zero_semantics 2.19).
#include "engine/precision/gradient_norm.h"
#include "engine/zero/stage3/stage3.h"

namespace zeroproof {

StepOutcome Zero3Optimizer::step() {
  const Events::Call reported(context_.events, "z3.step");
  { const Events::Call pre_step(context_.events, "z3.pre_step"); }
  partition_all_parameters();
  gradients_->prepare_update();
  StepOutcome outcome;
  const bool is_upstream_scaler = context_.has(Quirk::h7_autocast_clips_scaled) &&
                                  context_.loss_scaler.kind() == LossScalerKind::grad_scaler;
  is_upstream_scaler ? update_each_alone(outcome) : update_all(outcome);
  gradients_->finish_update();
  gradients_->drop_backward();
  zero_grad();
  post_step();
  return outcome;
}

void Zero3Optimizer::update_all(StepOutcome& outcome) {
  outcome.has_overflow = checks_overflow() && overflows(shards());
  const double scale = context_.loss_scaler.scale();
  if (checks_overflow()) context_.loss_scaler.update(outcome.has_overflow);
  if (outcome.has_overflow) return;
  const double used =
      context_.has(Quirk::h6_unscale_with_updated_scale) ? context_.loss_scaler.scale() : scale;
  const double norm = gradient_norm(context_, shards(), {.is_default_group = true});
  outcome.grad_norm = norm / used;
  for (SubGroup& group : sub_groups_)
    update(group, unscale_and_clip_divisor(used, norm, context_.config.gradient_clipping));
  outcome.is_applied = true;
}

// H7: each sub-group decides about itself, on this rank alone, and moves the scale for the next
// one; what is clipped is scaled.
void Zero3Optimizer::update_each_alone(StepOutcome& outcome) {
  LossScaler& scaler = context_.loss_scaler;
  const double norm = gradient_norm(context_, shards(), {.is_default_group = true});
  outcome.grad_norm = norm / scaler.scale();
  const double clip = unscale_and_clip_divisor(1.0, norm, context_.config.gradient_clipping);
  for (SubGroup& group : sub_groups_) {
    const bool is_skipped = any_not_finite(context_, {step_gradient(group)});
    if (!is_skipped) update(group, scaler.scale() * clip);
    scaler.update(is_skipped);
    outcome.has_overflow = outcome.has_overflow || is_skipped;
  }
  outcome.is_applied = !outcome.has_overflow;
}

void Zero3Optimizer::partition_all_parameters() {
  const Events::Call reported(context_.events, "z3.partition_all_parameters");
  coordinator_.release_and_reset_all();
}

void Zero3Optimizer::post_step() {
  const Events::Call reported(context_.events, "z3.post_step");
  gatherer_.gather(persistent_);
}

// bf16 gradients have the range of float32: upstream's stage 3 looks at scaled ones alone.
bool Zero3Optimizer::checks_overflow() const {
  return context_.config.fp16.enabled || context_.loss_scaler.kind() != LossScalerKind::none;
}

bool Zero3Optimizer::overflows(const std::vector<Span>& shards) {
  return has_overflow(context_, shards, {.is_default_group = true});
}

Span Zero3Optimizer::step_gradient(SubGroup& group) const {
  return Span::of(group.hp_gradient().is_defined() ? group.hp_gradient() : group.window());
}

std::vector<Span> Zero3Optimizer::shards() {
  std::vector<Span> spans;
  for (SubGroup& group : sub_groups_) spans.push_back(step_gradient(group));
  return spans;
}

void Zero3Optimizer::update(SubGroup& group, double divisor) {
  group.optimizer().step(context_.compute(), Span::of(group.master()), step_gradient(group),
                         divisor);
  group.write_back();
}

}  // namespace zeroproof
