// The update in stages 0 to 2, and how all ranks come by its values (docs/spec/zero.md 2.19).
#include <algorithm>

#include "engine/zero/flat_optimizer.h"
#include "engine/zero/step_plan.h"

namespace zeroproof {

GradientShards FlatOptimizer::gradient() {
  GradientShards gradient{
      .spans = {}, .is_whole = context_.config.stage == 0, .norm_bytes = 4, .overflow_bytes = 1};
  for (FlatGroup& group : groups_) gradient.spans.push_back(group.step_gradient());
  return gradient;
}

StepOutcome FlatOptimizer::update_groups() {
  if (steps_by_group(context_)) {
    const StepOutcome outcome = step_groups_independently(
        context_, groups_, [](FlatGroup& group) { return group.step_gradient(); },
        gradient_norm(context_, gradient()));
    gather_parameters();
    return outcome;
  }
  const StepPlan plan = plan_step(context_, gradient());
  if (plan.outcome.is_applied) update_parameters(plan.divisor);
  return plan.outcome;
}

void FlatOptimizer::update_parameters(const GradientDivisor& divisor) {
  if (ahead_) return ahead_->update(divisor);
  if (!gathers_in_parts()) {
    for (FlatGroup& group : groups_) {
      group.update(group.step_gradient(), divisor);
    }
    gather_parameters();
    return;
  }
  const auto join = [this] {
    context_.compute().wait(context_.runtime.stream(StreamRole::all_gather));
  };
  try {
    for (FlatGroup& group : groups_) update_in_parts(group, divisor);
  } catch (...) {
    join();  // what is on the way keeps its memory
    throw;
  }
  join();
}

// With overlap the gather of a part of every slice runs beside the update of the next one. Upstream
// gathers at once after the update.
bool FlatOptimizer::gathers_in_parts() const {
  return context_.config.has_overlap_comm() && ranks_ > 1 && !context_.config.is_offloaded() &&
         !context_.upstream.all;
}

// As many elements of all slices together as a gather may have, in the order of the slice: that of
// the next forward.
void FlatOptimizer::update_in_parts(FlatGroup& group, const GradientDivisor& divisor) {
  const Span gradient = group.step_gradient();
  const std::int64_t elements = group.own().elements;
  const std::int64_t most =
      std::max<std::int64_t>(context_.config.allgather_bucket_size / context_.data.size(), 1);
  group.begin_update();
  for (std::int64_t begin = 0; begin < elements; begin += most) {
    const FlatRange part{begin, std::min(most, elements - begin)};
    group.update_part(gradient, divisor, part);
    context_.runtime.stream(StreamRole::all_gather).wait(context_.compute());
    gather_part(group, part);
  }
}

// In place, where one all-gather has the parts of all ranks in a row; hence from each
// owner to all. One part, all of every slice: the all-gather itself.
void FlatOptimizer::gather_part(const FlatGroup& group, const FlatRange& part) {
  Stream& stream = context_.runtime.stream(StreamRole::all_gather);
  const FlatPartition& partition = group.partition();
  const auto of = [&](int rank) {
    return Span::of(group.flat(), partition.slice(rank).begin + part.begin, part.elements);
  };
  if (part.elements == group.own().elements) {
    context_.data.all_gather(stream, Span::of(group.flat()), of(context_.data.group().rank()), {});
    return;
  }
  context_.data.together([&] {
    for (int rank = 0; rank < partition.ranks(); ++rank)
      context_.data.broadcast(stream, of(rank), rank, {});
  });
}

void FlatOptimizer::gather_parameters() {
  if (ranks_ == 1) return;
  for (FlatGroup& group : groups_) {
    if (group.flat().numel() == 0) continue;
    const Span own = Span::of(group.flat(), group.own().begin, group.own().elements);
    Stream& stream = context_.compute();
    context_.data.all_gather(stream, Span::of(group.flat()), own, {});
  }
}

}  // namespace zeroproof
