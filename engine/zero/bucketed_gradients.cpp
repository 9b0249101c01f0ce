#include "engine/zero/bucketed_gradients.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "engine/zero/bucket_events.h"
#include "zeroproof/engine/engine_error.h"

namespace zeroproof {
namespace {

// As upstream sorts their names: "torch.bfloat16" before "torch.float16" before "torch.float32".
std::vector<DType> communication_dtypes(const ZeroParameters& parameters) {
  std::vector<DType> dtypes;
  for (const ZeroParameter& parameter : parameters)
    if (parameter.group >= 0) dtypes.push_back(parameter.communication_dtype);
  std::ranges::sort(dtypes, {}, dtype_name);
  dtypes.erase(std::unique(dtypes.begin(), dtypes.end()), dtypes.end());
  return dtypes;
}

}  // namespace

BucketedGradients::BucketedGradients(ZeroContext& context, const FlatSlots& slots, LocalSums& sums)
    : context_(context),
      slots_(slots),
      sums_(sums),
      reducer_(context, slots),
      progress_(context.parameters.size()) {
  std::int64_t total = 1;
  for (const ZeroParameter& parameter : context.parameters)
    if (parameter.group >= 0) total += parameter.elements;
  const std::int64_t capacity = std::min(total, context.config.reduce_bucket_size);
  for (const DType dtype : communication_dtypes(context.parameters))
    buckets_.emplace_back(context, dtype, capacity);
  bucket_of_.resize(context.parameters.size());
  for (const ZeroParameter& parameter : context.parameters)
    for (IpgBucket& bucket : buckets_)
      if (bucket.communication_dtype() == parameter.communication_dtype)
        bucket_of_[static_cast<std::size_t>(parameter.id.value)] = &bucket;
}

void BucketedGradients::set_up() {
  for (IpgBucket& bucket : buckets_) bucket.set_up();
  is_ready_ = true;
}

// docs/spec/zero.md 2.16, "offer".
void BucketedGradients::add(ZeroParameter& parameter) {
  if (!partitions_gradients() && !context_.is_boundary) return;
  Tensor& grad = parameter.tensor.impl().grad;  // itself: counting references costs time here
  if (parameter.elements == 0 || !grad.is_defined()) return;
  IpgBucket& target = bucket(parameter);
  const bool is_once = context_.upstream.param_once_per_backward;
  const bool joins = !is_once && target.holds(parameter);
  if (!joins && target.is_full_for(parameter.elements)) reduce_bucket(target);
  if (!parameter.is_gradient_ready) return report_not_ready(parameter);  // the last shard has all
  if (is_once && progress(parameter).is_reduced)
    throw EngineError(
        EngineErrorId::gradient_added_after_reduction,
        "the gradient of " + parameter.name + " has already been reduced in this backward");
  move_gradient(target, parameter, joins);
}

// Stage 2 keeps .grad of its own until the reduction; stage 1 would collect it once more.
void BucketedGradients::move_gradient(IpgBucket& target, ZeroParameter& parameter, bool joins) {
  Tensor& grad = parameter.tensor.impl().grad;
  const bool is_kept = !context_.config.contiguous_gradients && partitions_gradients();
  if (joins && is_kept) {
    target.rebind_grad(parameter, grad);
  } else if (joins) {
    target.add(parameter, grad);
  } else {
    const Span values = append(target, parameter, grad);
    if (!partitions_gradients()) add_local_sum(parameter, values);
  }
  if (!is_kept) grad = Tensor();
}

Span BucketedGradients::append(IpgBucket& target, ZeroParameter& parameter, const Tensor& grad) {
  const Span values = target.append(parameter, grad);
  if (context_.events.is_on()) report_bucket_add(context_.events, parameter);
  return values;
}

// Stage 1 with overlap: the gradient comes with the sum of the micro-batches before.
void BucketedGradients::add_local_sum(const ZeroParameter& parameter, Span values) {
  Tensor& sum = sums_.of(parameter);
  if (!sum.is_defined() || progress(parameter).is_sum_taken) return;
  context_.kernels().add(context_.compute(), values, Span::of(sum));
  progress(parameter).is_sum_taken = true;
}

void BucketedGradients::report_not_ready(const ZeroParameter& parameter) const {
  if (!context_.events.is_on()) return;
  HookEvent event;
  event.kind = EventKind::mark;
  event.name = context_.events.name("grad_not_ready");
  event.param = parameter.name_id;
  context_.events.send(std::move(event));
}

// docs/spec/zero.md 2.17.
void BucketedGradients::reduce_bucket(IpgBucket& target) {
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
    reducer_.average(target);
  }
  if (context_.upstream.param_once_per_backward) refuse_twice(target);
  accumulate_owned_partition(target);
  has_flushed_ = true;
  target.finish_reduction();
}

void BucketedGradients::refuse_twice(const IpgBucket& target) {
  for (const IpgBucket::Entry& entry : target.entries()) {
    if (progress(*entry.parameter).is_reduced)
      throw EngineError(EngineErrorId::gradient_reduced_twice,
                        "the gradient of " + entry.parameter->name +
                            " has already been reduced in this backward");
    progress(*entry.parameter).is_reduced = true;
  }
}

void BucketedGradients::accumulate_owned_partition(const IpgBucket& target) {
  for (const IpgBucket::Entry& entry : target.entries()) {
    ZeroParameter& parameter = *entry.parameter;
    progress(parameter).is_reduced = true;
    progress(parameter).has_contributed = true;
    const FlatSlot& place = slot_of(slots_, parameter);
    const FlatRange owned = place.group->owned(place.index);
    if (!context_.config.contiguous_gradients) parameter.tensor.set_grad({});
    if (owned.elements == 0) continue;
    const Events::Call call(context_.events, "z12.copy_grads_in_partition", parameter.name_id);
    place.group->add_pending(place.index, target.values(entry));
  }
}

void BucketedGradients::add_sum(ZeroParameter& parameter) {
  if (parameter.elements == 0) return;
  IpgBucket& target = bucket(parameter);
  if (target.is_full_for(parameter.elements)) reduce_bucket(target);
  if (target.holds(parameter)) {
    target.add(parameter, sums_.of(parameter));
  } else {
    append(target, parameter, sums_.of(parameter));
  }
  progress(parameter).is_sum_taken = true;
}

void BucketedGradients::flush() {
  for (IpgBucket& bucket : buckets_) {
    reduce_bucket(bucket);
  }
  if (has_overlap()) context_.compute().wait(context_.reduction());
}

void BucketedGradients::finish() {
  std::ranges::fill(progress_, Progress{});
  is_ready_ = false;
  has_flushed_ = false;
}

void BucketedGradients::abandon() {
  if (has_overlap()) context_.compute().wait(context_.reduction());  // what it still has may go now
  for (IpgBucket& bucket : buckets_) {
    bucket.clear();
  }
  finish();
}

void BucketedGradients::visit_state(StateVisitor& visitor) const {
  for (const IpgBucket& bucket : buckets_) bucket.visit_state(visitor);
  visitor.number((is_ready_ ? 1U : 0U) | (has_flushed_ ? 2U : 0U));
  // Eight flags a word.
  static_assert(std::has_unique_object_representations_v<Progress>);
  const auto flags = std::as_bytes(std::span(progress_));
  for (std::size_t at = 0; at < flags.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, &flags[at], std::min(sizeof word, flags.size() - at));
    visitor.number(word);
  }
}

}  // namespace zeroproof
