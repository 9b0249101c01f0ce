// The update of stage 3 (zero_semantics 2.19).
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
  if (outcome.is_applied || !context_.departs("Y03"_bug)) post_step();
  return outcome;
}

// Every rank refuses a loss scale (E22) alike, and then persistent parameters are whole again.
StepOutcome Zero3Optimizer::update_or_refuse() {
  try {
    return update();
  } catch (const EngineError&) {
    gradients_->finish_update();
    if (!context_.departs("T75"_bug)) post_step();
    throw;
  }
}

StepOutcome Zero3Optimizer::update() {
  const auto norm = [this] {
    return gradient_norm(context_, shards_of_norm(), {.is_default_group = true});
  };
  if (steps_by_group(context_))
    return step_each_alone(
        context_, sub_groups_, [this](SubGroup& group) { return step_gradient(group); }, norm());
  const auto squares = [this] {
    return gradient_squares(context_, shards(), {.is_default_group = true});
  };
  const double scale = context_.loss_scaler.scale();
  const StepPlan plan = plan_step(
      context_,
      {.overflows = [this] { return overflows(shards()); }, .norm = norm, .squares = squares});
  SubGroup* before = sub_groups_.empty() ? nullptr : &sub_groups_.back();
  if (plan.outcome.is_applied)
    for (SubGroup& group : sub_groups_) {
      if (context_.departs("S71"_bug))  // one optimizer, one count for all of them
        group.optimizer().set_steps(std::exchange(before, &group)->optimizer().steps());
      const auto contributed = [this](const PartitionedParameter* parameter) {
        return gradients_->has_contribution(*parameter);
      };
      // No gradient came for any of it.
      if (context_.departs("Z19"_bug) && std::ranges::none_of(group.parameters(), contributed))
        continue;
      group.update(step_gradient(group), plan.divisor);
      if (context_.departs("T85"_bug))  // all gradients are cleared, and not the group's
        for (const Span& shard : shards()) context_.kernels().fill(context_.compute(), shard, 0.0);
    }
  if (!plan.outcome.is_applied && context_.departs("S30"_bug)) update_until_overflow(scale);
  return plan.outcome;
}

// S30 of the planted faults: each sub-group is looked at only when it is its turn.
void Zero3Optimizer::update_until_overflow(double scale) {
  for (SubGroup& group : sub_groups_) {
    const Span gradient = step_gradient(group);
    if (overflows({gradient})) return;
    group.update(gradient, {.number = scale});
  }
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

// Persistent parameters, which every step gathers anew.
void Zero3Optimizer::begin_capture() {
  coordinator_.release_and_reset_all();
}

void Zero3Optimizer::partition_all_parameters() {
  const Events::Call reported(context_.events, "z3.partition_all_parameters");
  coordinator_.release_and_reset_all();
}

void Zero3Optimizer::post_step() {
  const Events::Call reported(context_.events, "z3.post_step");
  if (context_.departs("S89"_bug))  // each as it comes
    for (PartitionedParameter* parameter : persistent_) gatherer_.gather({parameter});
  gatherer_.gather(persistent_);
}

bool Zero3Optimizer::overflows(const std::vector<Span>& shards) {
  if (context_.departs("Q94"_bug))  // sub-group by sub-group, as the update goes
    return std::ranges::any_of(shards, [this](const Span& shard) {
      return has_overflow(context_, {shard}, {.is_default_group = true});
    });
  return has_overflow(context_, shards, {.is_default_group = true});
}

Span Zero3Optimizer::step_gradient(SubGroup& group) const {
  return Span::of(group.hp_gradient().is_defined() ? group.hp_gradient() : group.window());
}

// With S15 of the planted faults persistent parameters count on one rank, as if all had them whole.
std::vector<Span> Zero3Optimizer::shards_of_norm() {
  if (!context_.departs("S15"_bug) || context_.data.group().rank() == 0) return shards();
  std::vector<Span> spans;
  for (SubGroup& group : sub_groups_)
    for (std::size_t i = 0; i < group.parameters().size(); ++i)
      if (const FlatRange slice = group.padded(i); !group.parameters()[i]->is_persistent())
        spans.push_back(step_gradient(group).part(slice.begin, slice.elements));
  return spans;
}

std::vector<Span> Zero3Optimizer::shards() {
  std::vector<Span> spans;
  for (SubGroup& group : sub_groups_) spans.push_back(step_gradient(group));
  return spans;
}

}  // namespace zeroproof
