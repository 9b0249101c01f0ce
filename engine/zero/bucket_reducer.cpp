#include "engine/zero/bucket_reducer.h"

namespace zeroproof {

void BucketReducer::average(IpgBucket& target) {
  Stream& stream = context_.reduction();
  target.order_before_reduction();
  if (target.has_oversized()) {
    for (const IpgBucket::Entry& entry : target.entries())
      all_reduce(stream, {&entry, 1}, target.values(entry), target.communication_dtype());
    return;
  }
  if (context_.config.reduce_scatter && !context_.config.use_multi_rank_bucket_allreduce) {
    reduce_to_owners(stream, target);
  } else {
    all_reduce(stream, target.entries(), target.filled(), target.communication_dtype());
  }
}

CollectiveForm BucketReducer::form_of(std::span<const IpgBucket::Entry> entries,
                                      std::int64_t begin) const {
  const auto part_of = [begin](const IpgBucket::Entry& entry) {
    return ContentPart{entry.parameter->id.value, begin};
  };
  return {.is_default_group = true, .contents = context_.data.contents_of(entries, part_of)};
}

// The whole data on all ranks, averaged; on the wire in the communication dtype, or in float32
// where sequence-parallel ranks join in.
void BucketReducer::all_reduce(Stream& stream, std::span<const IpgBucket::Entry> entries, Span data,
                               DType communication_dtype) {
  const ZeroConfig& config = context_.config;
  Kernels& kernels = context_.kernels();
  const GradientAveraging averaging =
      context_.averaging(config.reduce_scatter || config.prescale_gradients);
  averaging.prepare(kernels, stream, data);
  const bool has_sequence = context_.runtime.group(GroupKind::sequence).size() > 1;
  const DType wire = has_sequence ? DType::float32 : communication_dtype;
  const CollectiveForm form = form_of(entries);
  if (wire == data.dtype()) {
    context_.data.all_reduce(stream, data, ReduceOp::sum, form);
  } else {
    const Tensor sent = context_.runtime.memory().allocate(data.elements, wire);
    kernels.copy(stream, Span::of(sent), data);
    context_.data.all_reduce(stream, Span::of(sent), ReduceOp::sum, form);
    kernels.copy(stream, data, Span::of(sent));
    stream.record_use(sent);
  }
  averaging.finish(kernels, stream, data);
}

// One reduce for each piece that one rank owns; the others need not get it.
void BucketReducer::reduce_to_owners(Stream& stream, const IpgBucket& target) {
  const auto averaging = GradientAveraging::before(context_.averaging_divisor());
  averaging.prepare(context_.kernels(), stream, target.filled());
  const Span data = target.filled();
  const DType wire = target.communication_dtype();
  if (wire == data.dtype()) return reduce_to_owners(stream, target, data);
  const Tensor sent = context_.runtime.memory().allocate(data.elements, wire);
  context_.kernels().copy(stream, Span::of(sent), data);
  reduce_to_owners(stream, target, Span::of(sent));
  context_.kernels().copy(stream, data, Span::of(sent));
  stream.record_use(sent);
}

void BucketReducer::reduce_to_owners(Stream& stream, const IpgBucket& target, const Span& sent) {
  context_.data.together([&] {
    for (const IpgBucket::Entry& entry : target.entries())
      reduce_to_owners(stream, entry, sent.part(entry.begin, entry.parameter->elements));
  });
}

void BucketReducer::reduce_to_owners(Stream& stream, const IpgBucket::Entry& entry,
                                     const Span& sent) {
  const FlatSlot& place = slot_of(slots_, *entry.parameter);
  const FlatPartition& partition = place.group->partition();
  const std::int64_t begin = partition.parameter(place.index).begin;
  for (int rank = 0; rank < partition.ranks(); ++rank) {
    const FlatRange owned = partition.owned(place.index, rank);
    if (owned.elements == 0) continue;
    const std::int64_t from = owned.begin - begin;
    const CollectiveForm form = form_of({&entry, 1}, from);
    context_.data.reduce(stream, sent.part(from, owned.elements), rank, ReduceOp::sum, form);
  }
}

}  // namespace zeroproof
