#include "engine/zero/flat_optimizer.h"

#include <algorithm>
#include <stdexcept>

#include "engine/precision/gradient_norm.h"
#include "engine/zero/step_plan.h"

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

// A whole backward's gradient leaves .grad, so that one that fails can be told from those before:
// what needs memory comes first, and goes again where there is none.
void FlatOptimizer::collect_gradients() {
  begin_sums();
  for (ZeroParameter& parameter : context_.parameters) {
    const Tensor grad = parameter.tensor.grad();
    if (slot(parameter).group == nullptr || !grad.is_defined()) continue;
    context_.kernels().add(context_.compute(), Span::of(accumulated(parameter)), Span::of(grad));
    parameter.tensor.set_grad({});
  }
}

void FlatOptimizer::begin_sums() {
  std::vector<Tensor*> begun;
  try {
    for (ZeroParameter& parameter : context_.parameters)
      if (Tensor* const sum = begin_sum(parameter)) begun.push_back(sum);
  } catch (...) {
    for (Tensor* const sum : begun) *sum = {};
    throw;
  }
}

// The first gradient of a sum becomes it, and leaves room for the next one; null: there is a sum.
Tensor* FlatOptimizer::begin_sum(ZeroParameter& parameter) {
  const DType dtype = context_.config.accumulation_dtype();
  const Tensor grad = parameter.tensor.grad();
  if (slot(parameter).group == nullptr || !grad.is_defined()) return nullptr;
  Tensor& sum = accumulated(parameter);
  if (sum.is_defined()) return nullptr;
  if (grad.dtype() == dtype) {
    sum = grad;
  } else {
    sum = context_.runtime.memory().allocate(grad.numel(), dtype);
    context_.kernels().copy(context_.compute(), Span::of(sum), Span::of(grad));
  }
  parameter.tensor.set_grad({});
  return &sum;
}

void FlatOptimizer::visit_state(StateVisitor& visitor) const {
  for (const FlatGroup& group : groups_) {
    visitor.number((group.has_accumulated() ? 1U : 0U) | (group.has_pending() ? 2U : 0U));
    if (group.has_accumulated()) visitor.values(Span::of(group.grad_accumulator()));
    if (group.has_pending()) visitor.values(Span::of(group.pending()));
  }
  for (std::size_t id = 0; id < accumulated_.size(); ++id) {
    if (!accumulated_[id].is_defined()) continue;
    visitor.number(id);
    visitor.values(Span::of(accumulated_[id]));
  }
}

std::vector<GradientSlice> FlatOptimizer::gradient_slices() const {
  std::vector<GradientSlice> slices;
  for (const FlatGroup& group : groups_)
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      const FlatRange whole = group.partition().parameter(i);
      const FlatRange owned = intersect(whole, group.own());
      if (owned.elements == 0) continue;
      slices.push_back(
          {group.parameters()[i]->id, owned.begin - whole.begin,
           Span::of(group.grad_accumulator(), owned.begin - group.own().begin, owned.elements)});
    }
  return slices;
}

std::vector<Span> FlatOptimizer::grad_accumulators() {
  std::vector<Span> spans;
  for (FlatGroup& group : groups_) spans.push_back(step_gradient(group));
  return spans;
}

StepOutcome FlatOptimizer::step() {
  if (steps_by_group(context_)) {
    const StepOutcome outcome = step_groups_independently(
        context_, groups_, [this](FlatGroup& group) { return step_gradient(group); }, norm());
    gather_parameters();
    drop_gradients();
    return outcome;
  }
  const StepPlan plan = plan_step(context_, {.overflows = [this] { return overflows(); },
                                             .norm = [this] { return norm(); },
                                             .squares = [this] { return squares(); }});
  if (plan.outcome.is_applied) update_parameters(plan.divisor);
  drop_gradients();
  return plan.outcome;
}

void FlatOptimizer::update_parameters(const GradientDivisor& divisor) {
  for (FlatGroup& group : groups_) {
    group.update(step_gradient(group), divisor);
  }
  gather_parameters();
}

void FlatOptimizer::set_rates(const std::vector<GroupRates>& groups) {
  for (FlatGroup& group : groups_)
    group.optimizer().set_rates(
        groups.at(static_cast<std::size_t>(group.parameters().front()->group)));
}

void FlatOptimizer::count_replayed_step() {
  for (FlatGroup& group : groups_) group.optimizer().count_replayed_step();
}

void FlatOptimizer::drop_gradients() {
  for (FlatGroup& group : groups_) {
    group.clear_accumulator();
    group.drop_pending();
  }
  std::ranges::fill(accumulated_, Tensor());
  clear_grads();
}

void FlatOptimizer::zero_grad() {
  drop_gradients();
}

void FlatOptimizer::clear_grads() {
  for (const ZeroParameter& parameter : context_.parameters) {
    parameter.tensor.set_grad({});
  }
}

}  // namespace zeroproof
