#include "engine/zero/ipg_bucket.h"

#include <algorithm>

namespace zeroproof {

IpgBucket::IpgBucket(ZeroContext& context, DType communication_dtype, std::int64_t capacity)
    : context_(context),
      communication_dtype_(communication_dtype),
      capacity_(capacity),
      elements_max_(std::min(context.config.reduce_bucket_size, capacity)),
      has_overlap_(context.config.has_overlap_comm()),
      device_(context.runtime.device()),
      is_contiguous_(context.config.contiguous_gradients),
      compute_(context.compute()),
      kernels_(context.kernels()),
      entry_places_(context.parameters.size()),
      places_(context.parameters.size(), -1) {
  producers_.reserve(4);
}

void IpgBucket::set_up() {
  if (!context_.config.contiguous_gradients) return;
  const std::size_t count =
      context_.config.has_overlap_comm() || context_.departs("T29"_bug) ? 2 : 1;
  for (std::size_t i = 0; i < count; ++i)
    if (!buffers_[i].values.is_defined())
      buffers_[i].values =
          context_.runtime.memory().allocate(capacity_, context_.config.model_dtype());
  if (!has_overlap_ && device_.is_cpu()) direct_max_ = elements_max_;
}

bool IpgBucket::is_full_for(std::int64_t elements) const {
  const std::int64_t room = context_.departs("T20"_bug) ? elements_max_ - 1 : elements_max_;
  return elements_ > 0 && elements_ + elements > room;
}

// With G05 of the catalogue every second gradient of a bucket has a stream of its own.
StreamIndex IpgBucket::current_producer() const {
  if (!device_.is_cpu()) return context_.autograd.current_stream(device_);
  return context_.departs("G05"_bug) && has_overlap_ && entry_count_ % 2 == 0 ? 1 : 0;
}

// G07 of the catalogue: a hook works on the stream that was current when it was registered.
void IpgBucket::check_on_side_stream(Stream& stream, const Span& target) {
  if (!context_.departs("G07"_bug) || !has_overlap_) return;
  Stream& side = context_.runtime.user_stream(1);
  side.wait(stream);
  kernels_.scale(side, target, 1.0);
}

// The stream that writes now. Before its first write it waits until the buffer's last reduction
// is through (P47); upstream lets only the current stream wait, once a reduction (H19).
Stream& IpgBucket::producer() {
  const StreamIndex index = current_producer();
  Stream& stream = index == 0 ? compute_ : context_.runtime.user_stream(index);
  if (!has_overlap_) return stream;
  if (context_.departs("G11"_bug) && entry_count_ == 1) return stream;  // handed out before hooks
  if (std::ranges::find(producers_, index) != producers_.end()) return stream;
  producers_.push_back(index);
  if (context_.departs("G03"_bug)) stream.wait(context_.reduction());  // for all of it
  if (index != 0 && device_.is_cpu()) stream.wait(compute_);
  const Buffer& buffer = buffers_[index_];
  const StreamEvent reduced = context_.departs("G12"_bug) ? buffer.reduced_before : buffer.reduced;
  const bool is_unordered = context_.departs("G01"_bug);
  if (!reduced.is_none() && !context_.has(Quirk::h19_reuse_waits_current_stream) && !is_unordered)
    stream.wait(reduced);
  return stream;
}

Span IpgBucket::append(ZeroParameter& parameter, const Tensor& grad) {
  const std::int64_t begin = elements_;
  const Span source = Span::of(grad, 0, parameter.elements);
  if (entry_count_ == entry_places_.size()) entry_places_.emplace_back();
  fill_entry(parameter);
  Stream& stream = producer();
  if (is_contiguous_ && parameter.elements <= capacity_) {
    const Span target = Span::of(buffers_[index_].values, begin, parameter.elements);
    kernels_.copy(stream, target, source);
    check_on_side_stream(stream, target);
    return target;
  }
  entry_places_[entry_count_ - 1].oversized = static_cast<std::int32_t>(oversized_.size());
  oversized_.push_back(reducible(parameter, grad));
  if (!is_contiguous_ && context_.departs("H02"_bug))
    kept_.push_back(context_.runtime.memory().allocate(parameter.elements, grad.dtype()));
  return Span::of(oversized_.back(), 0, parameter.elements);
}

// It is reduced where it is, so it has to be where the device's arithmetic is; and stay .grad.
Tensor IpgBucket::reducible(const ZeroParameter& parameter, const Tensor& grad) const {
  const Tensor placed = context_.runtime.ops().place(grad);
  const bool is_copy = &placed.impl() != &grad.impl();
  if (is_copy && !is_contiguous_) parameter.tensor.set_grad(placed);
  return placed;
}

void IpgBucket::add(const ZeroParameter& parameter, const Tensor& grad) {
  const Entry& entry = entry_places_.at(static_cast<std::size_t>(place_of(parameter)));
  const Span target = values(entry);
  kernels_.add(producer(), target, Span::of(grad));
}

void IpgBucket::renew(const ZeroParameter& parameter, const Tensor& grad) {
  const Entry& entry = entry_places_.at(static_cast<std::size_t>(place_of(parameter)));
  if (values(entry).tensor == &grad.impl()) return;  // added in place
  oversized_.at(static_cast<std::size_t>(entry.oversized)) = reducible(parameter, grad);
  producer();
}

Span IpgBucket::values(const Entry& entry) const {
  if (entry.oversized >= 0) return Span::of(oversized_[static_cast<std::size_t>(entry.oversized)]);
  return Span::of(buffers_[index_].values, entry.begin, entry.parameter->elements);
}

Span IpgBucket::filled() const {
  return Span::of(buffers_[index_].values, 0, elements_);
}

void IpgBucket::order_before_reduction() {
  if (!context_.config.has_overlap_comm()) return;
  Stream& reduction = context_.reduction();
  const StreamIndex current = context_.autograd.current_stream(context_.runtime.device());
  if (context_.has(Quirk::h19_reuse_waits_current_stream))
    context_.runtime.user_stream(current).wait(reduction);
  if (producers_.empty()) producers_.push_back(current);
  if (context_.departs("G05"_bug)) producers_.resize(1);
  for (const StreamIndex index : producers_) reduction.wait(context_.runtime.user_stream(index));
}

void IpgBucket::note_reduced() {
  buffers_[index_].reduced_before = buffers_[index_].reduced;
  buffers_[index_].reduced = context_.reduction().record();
}

void IpgBucket::finish_reduction() {
  if (context_.config.has_overlap_comm()) {
    if (context_.departs("G02"_bug)) index_ = 0;  // the bucket's reset comes before the exchange
    if (!context_.departs("T09"_bug)) note_reduced();
    index_ = 1 - index_;
  }
  clear();
}

// An oversized gradient is in use up to here by whatever the reduction queued.
void IpgBucket::clear() {
  if (has_overlap_ && !context_.departs("Z11"_bug))
    for (const Tensor& oversized : oversized_) context_.reduction().record_use(oversized);
  for (const Entry& entry : entries()) place_of(*entry.parameter) = -1;
  entry_count_ = 0;
  const bool is_kept = context_.departs("Z65"_bug) && is_contiguous_;  // as the buffers are
  if (!is_kept) oversized_.clear();
  producers_.clear();
  elements_ = 0;
}

void IpgBucket::visit_state(StateVisitor& visitor) const {
  visitor.number(entry_count_);
  for (const Entry& entry : entries()) {
    visitor.number(static_cast<std::uint64_t>(entry.parameter->id.value));
    visitor.values(values(entry));
  }
  for (const StreamIndex producer : producers_)
    visitor.number(static_cast<std::uint64_t>(producer));
}

}  // namespace zeroproof
