// The update in stages 1 and 2, what it asks of the gradients, and how all ranks come by its values
// (docs/spec/zero.md 2.19).
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/precision/gradient_norm.h"
#include "engine/zero/stage12.h"

namespace zeroproof {

double Stage12Optimizer::norm() {
  return gradient_norm(context_, grad_accumulators(), {.is_default_group = true, .bytes = 4});
}

Tensor Stage12Optimizer::squares() {
  return gradient_squares(context_, grad_accumulators(), {.is_default_group = true, .bytes = 4});
}

bool Stage12Optimizer::overflows() {
  return has_overflow(context_, grad_accumulators(), {.is_default_group = true, .bytes = 1});
}

void Stage12Optimizer::gather_parameters() {
  if (context_.data.size() == 1) return;
  for (FlatGroup& group : groups_) {
    if (group.flat().numel() == 0) continue;
    const Span own = Span::of(group.flat(), group.own().begin, group.own().elements);
    Stream& stream = context_.compute();
    context_.data.all_gather(stream, Span::of(group.flat()), own, {});
  }
}

// With overlap the gather of a part of every slice runs beside the update of the next one. Upstream
// gathers at once after the update.
bool Stage12Optimizer::gathers_in_parts() const {
  return has_overlap() && context_.data.size() > 1 && !context_.config.is_offloaded() &&
         !context_.upstream.all;
}

void Stage12Optimizer::update_parameters(const GradientDivisor& divisor) {
  if (!gathers_in_parts()) return FlatOptimizer::update_parameters(divisor);
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

// As many elements of all slices together as a gather may have, in the order of the slice: that of
// the next forward.
void Stage12Optimizer::update_in_parts(FlatGroup& group, const GradientDivisor& divisor) {
  const Span gradient = step_gradient(group);
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

// In place, where one all-gather has the parts of all ranks behind each other; hence from each
// owner to all. One part, all of every slice: the all-gather itself.
void Stage12Optimizer::gather_part(const FlatGroup& group, const FlatRange& part) {
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

}  // namespace zeroproof
