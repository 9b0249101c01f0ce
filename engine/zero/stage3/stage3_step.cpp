// The update of stage 3 (docs/spec/zero.md 2.19).
#include <algorithm>
#include <utility>

#include "engine/precision/gradient_norm.h"
#include "engine/zero/stage3/stage3.h"
#include "engine/zero/step_plan.h"

namespace zeroproof {

StepOutcome Zero3Optimizer::step() {
  const Events::Call reported(context_.events, "z3.step");
  {
    const Events::Call pre_step(context_.events, "z3.pre_step");
    context_.set_epilogue_ran(false);
  }
  partition_all_parameters();
  gradients_->prepare_update();
  const StepOutcome outcome = update_or_refuse();
  gradients_->finish_update();
  gradients_->drop_backward();
  zero_grad();
  post_step();
  return outcome;
}

// Every rank refuses a loss scale (overflow_at_minimum_scale) alike, and then persistent parameters
// are whole again.
StepOutcome Zero3Optimizer::update_or_refuse() {
  try {
    return update();
  } catch (const EngineError&) {
    gradients_->finish_update();
    post_step();
    throw;
  }
}

StepOutcome Zero3Optimizer::update() {
  const GradientShards gradient{.spans = shards()};
  if (steps_by_group(context_))
    return step_groups_independently(
        context_, sub_groups_, [this](SubGroup& group) { return step_gradient(group); },
        gradient_norm(context_, gradient));
  const StepPlan plan = plan_step(context_, gradient);
  if (plan.outcome.is_applied)
    for (SubGroup& group : sub_groups_) group.update(step_gradient(group), plan.divisor);
  return plan.outcome;
}

void Zero3Optimizer::set_rates(const std::vector<GroupRates>& groups) {
  for (SubGroup& group : sub_groups_) {
    const std::int32_t number = group.parameters().front()->parameter().group;
    group.optimizer().set_rates(groups.at(static_cast<std::size_t>(number)));
  }
}

void Zero3Optimizer::count_replayed_step() {
  for (SubGroup& group : sub_groups_) group.optimizer().count_replayed_step();
}

// Persistent parameters, which every step gathers again.
void Zero3Optimizer::begin_capture() {
  coordinator_.release_and_reset_all();
}

void Zero3Optimizer::partition_all_parameters() {
  const Events::Call reported(context_.events, "z3.partition_all_parameters");
  coordinator_.release_and_reset_all();
}

void Zero3Optimizer::post_step() {
  const Events::Call reported(context_.events, "z3.post_step");
  gatherer_.gather(persistent_);
}

Span Zero3Optimizer::step_gradient(SubGroup& group) const {
  return Span::of(group.hp_gradient().is_defined() ? group.hp_gradient()
                                                   : group.grad_accumulator());
}

std::vector<Span> Zero3Optimizer::shards() {
  std::vector<Span> spans;
  for (SubGroup& group : sub_groups_) spans.push_back(step_gradient(group));
  return spans;
}

}  // namespace zeroproof
