// The update in stages 1 and 2, what it asks of the gradients, and how all ranks come by its values
// (zero_semantics 2.19).
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/precision/gradient_norm.h"
#include "engine/zero/stage12.h"

namespace zeroproof {

double Stage12Optimizer::norm() {
  if (first_norm_) return *std::exchange(first_norm_, std::nullopt);
  if (context_.departs("S84"_bug) && context_.config.is_offloaded()) {
    std::vector<Span> spans;  // a parameter is its first owner's
    for (const GradientSlice& slice : gradient_slices())
      if (slice.begin == 0) spans.push_back(slice.values);
    return gradient_norm(context_, spans, {.is_default_group = true, .bytes = 4});
  }
  return gradient_norm(context_, windows(), {.is_default_group = true, .bytes = 4});
}

Tensor Stage12Optimizer::squares() {
  return gradient_squares(context_, windows(), {.is_default_group = true, .bytes = 4});
}

bool Stage12Optimizer::overflows() {
  const auto is_padding = [](const FlatGroup& group) {
    return group.own().begin >= group.partition().elements() - group.partition().padding();
  };
  if (context_.departs("D03"_bug) && std::ranges::all_of(groups_, is_padding)) return false;
  return has_overflow(context_, windows(), {.is_default_group = true, .bytes = 1});
}

void Stage12Optimizer::gather_parameters() {
  if (context_.data.size() == 1) return;
  for (FlatGroup& group : groups_) {
    if (group.flat().numel() == 0 && context_.departs("T69"_bug)) return;  // nothing to gather
    if (group.flat().numel() == 0) continue;
    const bool is_idle = std::ranges::none_of(group.parameters(), [this](const auto* parameter) {
      return is_used_[static_cast<std::size_t>(parameter->id.value)];
    });
    if (context_.departs("X16"_bug) && is_idle && window_holds_ > 0) continue;  // no gradient came
    const Span own = Span::of(group.flat(), group.own().begin, group.own().elements);
    const bool is_unordered = context_.departs("G19"_bug);
    Stream& stream =
        is_unordered ? context_.runtime.stream(StreamRole::all_gather) : context_.compute();
    context_.data.all_gather(stream, Span::of(group.flat()), own, {});
    if (is_unordered) context_.compute().wait(stream);
    const std::int64_t rest = group.flat().numel() - context_.config.reduce_bucket_size;
    if (context_.departs("B18"_bug) && rest > 0)  // the buckets that still wait for their copy
      context_.kernels().fill(context_.compute(),
                              Span::of(group.flat(), group.flat().numel() - rest, rest), 0.0);
  }
}

// With overlap the gather of a part of every slice runs beside the update of the next one. Upstream
// gathers at once behind the update, and so do the faults that gather_parameters() has.
bool Stage12Optimizer::gathers_in_parts() const {
  const bool is_planted =
      context_.departs("B18"_bug) || context_.departs("G19"_bug) || context_.departs("X16"_bug);
  return has_overlap() && context_.data.size() > 1 && !context_.config.is_offloaded() &&
         !context_.is_upstream() && !is_planted;
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
  if (!context_.departs("Y04"_bug)) join();  // whoever reads them next will wait
}

// As many elements of all slices together as a gather may have, in the order of the slice: that of
// the next forward.
void Stage12Optimizer::update_in_parts(FlatGroup& group, const GradientDivisor& of_all) {
  const GradientDivisor divisor = divisor_of_group(group, of_all);
  const Span gradient = step_gradient(group);
  const std::int64_t elements = group.own().elements;
  const std::int64_t unit = context_.departs("Z62"_bug) ? item_bytes(group.flat().dtype()) : 1;
  const std::int64_t most = std::max<std::int64_t>(
      context_.config.allgather_bucket_size / (context_.data.size() * unit), 1);
  group.begin_update();
  for (std::int64_t begin = 0; begin < elements; begin += most) {
    const FlatRange part{begin, std::min(most, elements - begin)};
    if (begin > 0 && context_.departs("Z37"_bug)) group.begin_update();
    const bool is_undivided = begin > 0 && context_.departs("S06"_bug);  // the first part did it
    group.update_part(gradient, is_undivided ? GradientDivisor{} : divisor, part);
    if (begin == 0 || !context_.departs("Z12"_bug))
      context_.runtime.stream(StreamRole::all_gather).wait(context_.compute());
    const bool is_rest = begin > 0 && part.elements < most;  // parts were counted, rounded down
    if (!is_rest || !context_.departs("T11"_bug)) gather_part(group, part);
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
