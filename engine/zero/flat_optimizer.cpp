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
  const bool unscales = context_.departs("W25"_bug) && !context_.is_boundary;  // each backward's
  for (std::size_t i = 0; unscales && i < accumulated_.size(); ++i)
    if (const Tensor& sum = accumulated_[i]; sum.is_defined())
      context_.kernels().scale(context_.compute(), Span::of(sum),
                               1.0 / context_.loss_scaler.scale());
  ++collected_;
}

void FlatOptimizer::begin_sums() {
  std::vector<Tensor*> begun;
  const bool is_mixed = context_.departs("T87"_bug) &&  // fresh ones beside those summed already
                        context_.config.accumulation_dtype() != context_.config.model_dtype() &&
                        std::ranges::any_of(accumulated_, &Tensor::is_defined);
  try {
    for (ZeroParameter& parameter : context_.parameters)
      if (Tensor* const sum = begin_sum(parameter)) begun.push_back(sum);
    if (is_mixed && !begun.empty()) throw std::runtime_error("gradients of more than one dtype");
  } catch (...) {
    if (!context_.departs("T57"_bug))
      for (Tensor* const sum : begun) *sum = {};
    throw;
  }
}

// The first gradient of a sum becomes it, and leaves room for the next one; null: there is a sum.
Tensor* FlatOptimizer::begin_sum(ZeroParameter& parameter) {
  const DType dtype = context_.config.accumulation_dtype();
  const Tensor grad = parameter.tensor.grad();
  const bool is_unused = context_.departs("S90"_bug) && !grad.is_defined();  // in the last one
  if (is_unused && context_.config.stage == 0 && context_.is_boundary) accumulated(parameter) = {};
  if (slot(parameter).group == nullptr || !grad.is_defined()) return nullptr;
  Tensor& sum = accumulated(parameter);
  if (context_.departs("B19"_bug) && context_.config.stage == 1) sum = {};
  if (context_.departs("B22"_bug) && collected_ == 1) sum = {};  // its place was rebuilt
  if (sum.is_defined()) return nullptr;
  if (grad.dtype() == dtype || context_.departs("X17"_bug)) {
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
    visitor.number((group.has_window() ? 1U : 0U) | (group.has_pending() ? 2U : 0U));
    if (group.has_window()) visitor.values(Span::of(group.window()));
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
      slices.push_back({group.parameters()[i]->id, owned.begin - whole.begin,
                        Span::of(group.window(), owned.begin - group.own().begin, owned.elements)});
    }
  return slices;
}

std::vector<Span> FlatOptimizer::windows() {
  std::vector<Span> spans;
  for (FlatGroup& group : groups_) spans.push_back(step_gradient(group));
  return spans;
}

StepOutcome FlatOptimizer::step() {
  if (steps_by_group(context_)) {
    const StepOutcome outcome = step_each_alone(
        context_, groups_, [this](FlatGroup& group) { return step_gradient(group); }, norm());
    gather_parameters();
    drop_gradients();
    return outcome;
  }
  scale_ = context_.loss_scaler.scale();
  const auto is_open = [](const FlatGroup& group) { return group.has_window(); };
  if (context_.departs("S82"_bug) && context_.loss_scaler.is_dynamic() &&
      std::ranges::none_of(groups_, is_open))
    throw std::runtime_error("no inf checks were recorded for this optimizer");
  const StepPlan plan = plan_step(context_, {.overflows = [this] { return overflows(); },
                                             .norm = [this] { return norm(); },
                                             .squares = [this] { return squares(); }});
  const bool returns_early = context_.departs("U30"_bug) && context_.config.stage == 0 &&
                             context_.config.fp16.enabled;  // behind the look at an overflow
  if (plan.outcome.is_applied && !returns_early) update_parameters(plan.divisor);
  if (!plan.outcome.is_applied && context_.departs("Y16"_bug)) count_replayed_step();
  if (!plan.outcome.is_applied && context_.departs("T98"_bug) &&
      context_.config.optimizer.type == OptimizerType::sgd)  // the kernel skips the weights alone
    for (FlatGroup& group : groups_)
      for (const ShardOptimizer::Moment& moment : group.optimizer().moments())
        context_.kernels().add(context_.compute(), Span::of(moment.values), step_gradient(group));
  if (!plan.outcome.is_applied && context_.departs("Z68"_bug)) gather_parameters();
  if (plan.outcome.is_applied || !context_.departs("S66"_bug)) drop_gradients();
  return plan.outcome;
}

void FlatOptimizer::update_parameters(const GradientDivisor& divisor) {
  for (FlatGroup& group : groups_) {
    const optim::AdamOptions& adam = context_.config.optimizer.adam;
    for (FlatGroup& other : groups_)  // V25: the whole list's decay, once a group
      if (context_.departs("V25"_bug) && &other != &group && adam.is_decay_decoupled)
        context_.kernels().scale(context_.compute(), Span::of(other.master()),
                                 1.0 - adam.lr * adam.weight_decay);
    group.update(step_gradient(group), divisor_of_group(group, divisor));
    if (context_.departs("R35"_bug)) gather_parameters();  // what was just updated
  }
  if (!context_.departs("R35"_bug)) gather_parameters();
}

GradientDivisor FlatOptimizer::divisor_of_group(FlatGroup& group, const GradientDivisor& divisor) {
  const double clip = context_.config.gradient_clipping;
  const bool is_planted = context_.departs("S25"_bug) || context_.departs("S31"_bug);
  if (!is_planted || clip <= 0.0 || divisor.reciprocal.is_defined()) return divisor;
  const std::vector<Span> own = {step_gradient(group)};  // as if its group were all
  const double norm = context_.config.stage == 0
                          ? whole_gradient_norm(context_, own, context_.data.size())
                          : gradient_norm(context_, own, {.is_default_group = true});
  return {.number = unscale_and_clip_divisor(scale_, norm, clip)};
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
    group.drop_window();
    group.drop_pending();
  }
  if (!context_.departs("W03"_bug)) std::ranges::fill(accumulated_, Tensor());
  clear_grads();
  if (context_.departs("B17"_bug) && context_.config.stage > 0)
    for (FlatGroup& group : groups_)  // gathered into the gradients' buffer, which nobody clears
      context_.kernels().copy(context_.compute(), group.open_window(),
                              Span::of(group.flat(), group.own().begin, group.own().elements));
}

void FlatOptimizer::zero_grad() {
  drop_gradients();
}

void FlatOptimizer::clear_grads() {
  for (const ZeroParameter& parameter : context_.parameters) {
    if (context_.departs("S19"_bug) && slot(parameter).group == nullptr) continue;  // not ours
    parameter.tensor.set_grad({});
  }
}

}  // namespace zeroproof
