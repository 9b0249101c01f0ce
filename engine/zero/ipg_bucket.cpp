#include "engine/zero/ipg_bucket.h"

#include <algorithm>

namespace zeroproof {
namespace {

// docs/spec/zero.md 6.1: as wide as the gradients that come in and the wire they leave by.
DType staging_dtype(const ZeroContext& context, DType communication_dtype) {
  const ZeroConfig& config = context.config;
  const bool takes_sums = config.stage == 1 && config.accumulation_dtype() == DType::float32;
  const bool is_wide = takes_sums || communication_dtype == DType::float32;
  return is_wide && !context.upstream.all ? DType::float32 : config.model_dtype();
}

}  // namespace

IpgBucket::IpgBucket(ZeroContext& context, DType communication_dtype, std::int64_t capacity)
    : context_(context),
      communication_dtype_(communication_dtype),
      dtype_(staging_dtype(context, communication_dtype)),
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
  const std::size_t count = context_.config.has_overlap_comm() ? 2 : 1;
  for (std::size_t i = 0; i < count; ++i)
    if (!buffers_[i].values.is_defined())
      buffers_[i].values = context_.runtime.memory().allocate(capacity_, dtype_);
  if (!has_overlap_ && device_.is_cpu()) direct_max_ = elements_max_;
}

bool IpgBucket::is_full_for(std::int64_t elements) const {
  return elements_ > 0 && elements_ + elements > elements_max_;
}

StreamIndex IpgBucket::current_producer() const {
  if (!device_.is_cpu()) return context_.autograd.current_stream(device_);
  return 0;
}

// The stream that writes now. Before its first write it waits until the buffer's last reduction
// is through (P47); upstream lets only the current stream wait, once a reduction (H19).
Stream& IpgBucket::producer() {
  const StreamIndex index = current_producer();
  Stream& stream = index == 0 ? compute_ : context_.runtime.user_stream(index);
  if (!has_overlap_) return stream;
  if (std::ranges::find(producers_, index) != producers_.end()) return stream;
  producers_.push_back(index);
  if (index != 0 && device_.is_cpu()) stream.wait(compute_);
  const Buffer& buffer = buffers_[index_];
  const StreamEvent reduced = buffer.reduced;
  if (!reduced.is_none() && !context_.upstream.reuse_waits_current_stream) stream.wait(reduced);
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
    return target;
  }
  entry_places_[entry_count_ - 1].oversized = static_cast<std::int32_t>(oversized_.size());
  oversized_.push_back(reducible(parameter, grad));
  return Span::of(oversized_.back(), 0, parameter.elements);
}

// It is reduced where it is, so it has to be where the device's arithmetic is; and stay .grad. A
// narrower one is reduced in a copy.
Tensor IpgBucket::reducible(const ZeroParameter& parameter, const Tensor& grad) {
  if (grad.dtype() != dtype_) {
    Tensor copy = context_.runtime.memory().allocate(parameter.elements, dtype_);
    kernels_.copy(producer(), Span::of(copy), Span::of(grad, 0, parameter.elements));
    return copy;
  }
  Tensor placed = context_.runtime.ops().place(grad);
  const bool is_copy = &placed.impl() != &grad.impl();
  if (is_copy && !is_contiguous_) parameter.tensor.set_grad(placed);
  return placed;
}

void IpgBucket::add(const ZeroParameter& parameter, const Tensor& grad) {
  const Entry& entry = entry_places_.at(static_cast<std::size_t>(place_of(parameter)));
  const Span target = values(entry);
  kernels_.add(producer(), target, Span::of(grad));
}

void IpgBucket::rebind_grad(const ZeroParameter& parameter, const Tensor& grad) {
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
  if (context_.upstream.reuse_waits_current_stream)
    context_.runtime.user_stream(current).wait(reduction);
  if (producers_.empty()) producers_.push_back(current);
  for (const StreamIndex index : producers_) reduction.wait(context_.runtime.user_stream(index));
}

void IpgBucket::record_reduction_event() {
  buffers_[index_].reduced = context_.reduction().record();
}

void IpgBucket::finish_reduction() {
  if (context_.config.has_overlap_comm()) {
    record_reduction_event();
    index_ = 1 - index_;
  }
  clear();
}

// An oversized gradient is in use up to here by whatever the reduction queued.
void IpgBucket::clear() {
  if (has_overlap_)
    for (const Tensor& oversized : oversized_) context_.reduction().record_use(oversized);
  for (const Entry& entry : entries()) place_of(*entry.parameter) = -1;
  entry_count_ = 0;
  oversized_.clear();
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
