#include "engine/zero/flat_optimizer.h"

#include <utility>

namespace zeroproof {

FlatOptimizer::FlatOptimizer(ZeroContext& context, int ranks, int rank)
    : context_(context), sums_(context), ranks_(ranks), slots_(context.parameters.size()) {
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
  if (context.gathers_ahead && gathers_in_parts())
    ahead_ = std::make_unique<GathersAhead>(context, groups_, slots_);
}

void FlatOptimizer::on_forward_begin(bool) {
  if (ahead_) ahead_->begin();
}

std::int64_t FlatOptimizer::on_forward_end(bool) {
  if (ahead_) ahead_->finish();
  return -1;
}

void FlatOptimizer::gather_ahead() {
  if (!ahead_) return;
  ahead_->begin();
  ahead_->finish();
}

// Each replay gathers, also where the iteration before the capture left no values to gather.
void FlatOptimizer::begin_capture() {
  if (ahead_) ahead_->expect();
}

void FlatOptimizer::abandon_capture() {
  if (ahead_) ahead_->forget();
}

void FlatOptimizer::visit_state(StateVisitor& visitor) const {
  for (const FlatGroup& group : groups_) {
    visitor.number((group.has_accumulated() ? 1U : 0U) | (group.has_pending() ? 2U : 0U));
    if (group.has_accumulated()) visitor.values(Span::of(group.grad_accumulator()));
    if (group.has_pending()) visitor.values(Span::of(group.pending()));
  }
  sums_.visit_state(visitor);
}

std::vector<GradientSlice> FlatOptimizer::gradient_slices() const {
  std::vector<GradientSlice> slices;
  for (const FlatGroup& group : groups_)
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      const FlatRange whole = group.partition().parameter(i);
      const FlatRange owned = group.owned(i);
      if (owned.elements == 0) continue;
      slices.push_back(
          {group.parameters()[i]->id, owned.begin - whole.begin,
           Span::of(group.grad_accumulator(), owned.begin - group.own().begin, owned.elements)});
    }
  return slices;
}

void FlatOptimizer::set_rates(const std::vector<GroupRates>& groups) {
  for (FlatGroup& group : groups_)
    group.optimizer().set_rates(
        groups.at(static_cast<std::size_t>(group.parameters().front()->group)));
}

void FlatOptimizer::count_replayed_step() {
  for (FlatGroup& group : groups_) group.optimizer().count_replayed_step();
  if (ahead_) ahead_->expect();
}

void FlatOptimizer::drop_windows() {
  for (FlatGroup& group : groups_) {
    group.clear_accumulator();
    group.drop_pending();
  }
  sums_.drop();
  context_.clear_grads();
}

}  // namespace zeroproof
