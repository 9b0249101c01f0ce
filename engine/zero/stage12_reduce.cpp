// The reduction of one bucket in stages 1 and 2 (zero_semantics 2.17).
#include <algorithm>
#include <string>

#include "engine/zero/bucket_events.h"
#include "engine/zero/stage12.h"

namespace zeroproof {

void Stage12Optimizer::reduce_bucket(IpgBucket& target) {
  if (target.is_empty()) return;
  if (context_.events.is_on()) {
    std::vector<NameId> params;
    for (const IpgBucket::Entry& entry : target.entries())
      params.push_back(entry.parameter->name_id);
    report_bucket_flush(context_.events, target.communication_dtype(), target.elements(),
                        std::move(params));
  }
  {
    const Events::Call call(context_.events, "z12.average_tensor");
    average(target);
  }
  if (context_.upstream.param_once_per_backward) refuse_twice(target);
  accumulate_owned_partition(target);
  has_flushed_ = true;
  target.finish_reduction();
}

void Stage12Optimizer::average(IpgBucket& target) {
  Stream& stream = context_.reduction();
  target.order_before_reduction();
  if (target.has_oversized()) {
    for (const IpgBucket::Entry& entry : target.entries()) {
      all_reduce(stream, {&entry, 1}, target.values(entry), target.communication_dtype());
    }
    return;
  }
  if (context_.config.reduce_scatter && !context_.config.use_multi_rank_bucket_allreduce) {
    reduce_to_owners(stream, target);
  } else {
    all_reduce(stream, target.entries(), target.filled(), target.communication_dtype());
  }
}

void Stage12Optimizer::announce(std::span<const IpgBucket::Entry> entries, std::int64_t begin) {
  context_.data.announce(entries, [begin](const IpgBucket::Entry& entry) {
    return ContentPart{entry.parameter->id.value, begin};
  });
}

// The whole data on all ranks, averaged; on the wire in the communication dtype, or in float32
// where sequence-parallel ranks join in.
void Stage12Optimizer::all_reduce(Stream& stream, std::span<const IpgBucket::Entry> entries,
                                  Span data, DType communication_dtype) {
  const ZeroConfig& config = context_.config;
  Kernels& kernels = context_.kernels();
  const GradientAveraging averaging =
      context_.averaging(config.reduce_scatter || config.prescale_gradients);
  averaging.prepare(kernels, stream, data);
  const bool has_sequence = context_.runtime.group(GroupKind::sequence).size() > 1;
  const DType wire = has_sequence ? DType::float32 : communication_dtype;
  const CollectiveForm form{.is_default_group = true};
  if (wire == data.dtype()) {
    announce(entries);
    context_.data.all_reduce(stream, data, ReduceOp::sum, form);
  } else {
    const Tensor sent = context_.runtime.memory().allocate(data.elements, wire);
    kernels.copy(stream, Span::of(sent), data);
    announce(entries);
    context_.data.all_reduce(stream, Span::of(sent), ReduceOp::sum, form);
    kernels.copy(stream, data, Span::of(sent));
    stream.record_use(sent);
  }
  averaging.finish(kernels, stream, data);
}

// One reduce for each piece that one rank owns; the others need not get it.
void Stage12Optimizer::reduce_to_owners(Stream& stream, const IpgBucket& target) {
  const auto averaging = GradientAveraging::before(context_.averaging_divisor());
  averaging.prepare(context_.kernels(), stream, target.filled());
  context_.data.together([&] {
    for (const IpgBucket::Entry& entry : target.entries()) reduce_to_owners(stream, target, entry);
  });
}

void Stage12Optimizer::reduce_to_owners(Stream& stream, const IpgBucket& target,
                                        const IpgBucket::Entry& entry) {
  const Slot& place = slot(*entry.parameter);
  const FlatPartition& partition = place.group->partition();
  const std::int64_t begin = partition.parameter(place.index).begin;
  for (int rank = 0; rank < partition.ranks(); ++rank) {
    const FlatRange owned = partition.owned(place.index, rank);
    if (owned.elements == 0) continue;
    announce({&entry, 1}, owned.begin - begin);
    const std::int64_t from = owned.begin - begin;
    context_.data.reduce(stream, target.values(entry).part(from, owned.elements), rank,
                         ReduceOp::sum, {.is_default_group = true});
  }
}

void Stage12Optimizer::accumulate_owned_partition(const IpgBucket& target) {
  for (const IpgBucket::Entry& entry : target.entries()) {
    ZeroParameter& parameter = *entry.parameter;
    progress(parameter).is_reduced = true;
    progress(parameter).has_contributed = true;
    const Slot& place = slot(parameter);
    const FlatRange owned =
        intersect(place.group->partition().parameter(place.index), place.group->own());
    if (!context_.config.contiguous_gradients) parameter.tensor.set_grad({});
    if (owned.elements == 0) continue;
    progress(parameter).has_contributed = true;
    const Events::Call call(context_.events, "z12.copy_grads_in_partition", parameter.name_id);
    place.group->add_owned(place.group->open_pending(), place.index, target.values(entry));
  }
}

void Stage12Optimizer::refuse_twice(const IpgBucket& target) {
  for (const IpgBucket::Entry& entry : target.entries()) {
    if (progress(*entry.parameter).is_reduced)
      throw EngineError(EngineErrorId::gradient_reduced_twice,
                        "the gradient of " + entry.parameter->name +
                            " has already been reduced in this backward");
    progress(*entry.parameter).is_reduced = true;
  }
}

// What the step reads: with H21 only what fired at the boundary got there.
Span Stage12Optimizer::step_gradient(FlatGroup& group) {
  if (boundary_copies_.empty()) return group.add_to_accumulator();
  const auto index = static_cast<std::size_t>(
      std::ranges::find_if(groups_, [&](const FlatGroup& it) { return &it == &group; }) -
      groups_.begin());
  return Span::of(boundary_copies_[index]);
}

// Upstream's CPU offload (zero_semantics 2.18a): accumulators that nobody clears (H15), a copy
// for the optimizer of what fires at the boundary alone (H21), and slices that only a use in the
// window begins anew (N8).
void Stage12Optimizer::commit_as_upstream_offload(FlatGroup& group) {
  Kernels& kernels = context_.kernels();
  Stream& stream = context_.compute();
  if (context_.upstream.offload_copies_boundary_only && boundary_copies_.empty())
    for (const FlatGroup& each : groups_) {
      boundary_copies_.push_back(context_.runtime.memory().allocate(
          each.own().elements, each.grad_accumulator().dtype(), Placement::host));
      kernels.fill(stream, Span::of(boundary_copies_.back()), 0.0);
    }
  if (!group.has_pending()) return;
  const Span window = group.add_to_accumulator();
  const Span pending = group.open_pending();
  for (std::size_t i = 0; i < group.parameters().size(); ++i) {
    const FlatRange owned = intersect(group.partition().parameter(i), group.own());
    if (owned.elements == 0 || !progress(*group.parameters()[i]).has_contributed) continue;
    const std::int64_t begin = owned.begin - group.own().begin;
    const Span sum = window.part(begin, owned.elements);
    const auto id = static_cast<std::size_t>(group.parameters()[i]->id.value);
    const bool is_first =
        context_.upstream.offload_never_cleared ? micro_ == 0 : repeats_unused() && !is_used_[id];
    if (is_first) {
      kernels.copy(stream, sum, pending.part(begin, owned.elements));
    } else {
      kernels.add(stream, sum, pending.part(begin, owned.elements));
    }
    if (context_.is_boundary && !boundary_copies_.empty())
      kernels.copy(stream, step_gradient(group).part(begin, owned.elements), sum);
  }
  group.drop_pending();
}

}  // namespace zeroproof
