#include "engine/zero/stage3/gradient_reducer.h"

namespace zeroproof {
namespace {

constexpr std::size_t kOutstandingReductionsMax = 2;

std::int64_t slices_of(const ParameterList& parameters) {
  std::int64_t elements = 0;
  for (const PartitionedParameter* parameter : parameters) elements += parameter->slice_elements();
  return elements;
}

}  // namespace

Tensor GradientReducer::reduce(const ParameterList& parameters, DType dtype) {
  limit_outstanding();
  buffers_.clear();
  try {
    Tensor slices = context_.config.reduce_scatter ? reduce_scatter(parameters, dtype)
                                                   : all_reduce(parameters, dtype);
    outstanding_.push_back(stream().record());
    if (!context_.departs("Z13"_bug)) buffers_.clear();
    return slices;
  } catch (...) {
    for (const Tensor& buffer : buffers_) stream().record_use(buffer);
    throw;
  }
}

// Upstream forgets the sequence-parallel ranks on the reduce-scatter path (H18).
double GradientReducer::divisor() const {
  const bool has_correction =
      !context_.config.reduce_scatter || !context_.has(Quirk::h18_no_sequence_correction);
  return has_correction ? context_.averaging_divisor() : static_cast<double>(context_.data.size());
}

Tensor GradientReducer::allocate(std::int64_t elements, DType dtype) {
  return buffers_.emplace_back(context_.runtime.memory().allocate(elements, dtype));
}

Tensor GradientReducer::recycle(std::int64_t elements, DType dtype) {
  const bool fits =
      recycled_.is_defined() && recycled_.numel() == elements && recycled_.dtype() == dtype;
  if (!fits) recycled_ = allocate(elements, dtype);
  return recycled_;
}

Tensor GradientReducer::reduce_scatter(const ParameterList& parameters, DType dtype) {
  Kernels& kernels = context_.kernels();
  const int ranks = context_.data.size();
  const std::int64_t slices = slices_of(parameters);
  const bool is_recycled = context_.departs("G13"_bug);
  const Tensor all = is_recycled ? recycle(slices * ranks, dtype) : allocate(slices * ranks, dtype);
  if (is_recycled) kernels.fill(context_.compute(), Span::of(all), 0.0);
  if (is_recycled) stream().wait(context_.compute());
  for (int rank = 0; rank < ranks; ++rank) {
    std::int64_t offset = slices * rank;
    for (const PartitionedParameter* parameter : parameters) {
      const std::int64_t elements = parameter->elements_of(rank);
      const Span sent = Span::of(all, offset, elements);
      if (elements > 0)
        kernels.copy(stream(), sent,
                     Span::of(parameter->parameter().tensor.grad(),
                              parameter->slice_elements() * rank, elements));
      if (elements > 0 && parameter->is_of_leaf_module()) depart_for_expert(sent);
      const std::int64_t padding = parameter->slice_elements() - elements;
      if (padding > 0) kernels.fill(stream(), Span::of(all, offset + elements, padding), 0.0);
      offset += parameter->slice_elements();
    }
  }
  const bool is_late = context_.departs("S35"_bug);  // one division for what this rank keeps
  if (divisor() != 1.0 && !is_late) kernels.divide(stream(), Span::of(all), divisor());
  const Tensor own = is_recycled
                         ? all.as_strided({slices}, {1}, slices * context_.data.group().rank())
                         : allocate(slices, dtype);
  announce(context_, parameters);
  // Chunked for one group, reduced over another.
  const Span input = context_.departs("E12"_bug) ? Span::of(all, 0, slices) : Span::of(all);
  const Work work = context_.data.reduce_scatter(stream(), Span::of(own), input, ReduceOp::sum, {});
  context_.data.group().wait(work, stream());
  if (divisor() != 1.0 && is_late) kernels.divide(stream(), Span::of(own), divisor());
  if (!context_.departs("G14"_bug)) stream().record_use(all);
  return own;
}

// Of the catalogue: C04 divides what experts have before it is packed, and once more with the rest;
// C05 divides it by the half of the ranks that share an expert, and not by all.
void GradientReducer::depart_for_expert(Span sent) {
  Kernels& kernels = context_.kernels();
  if (divisor() == 1.0) return;
  if (context_.departs("C04"_bug)) kernels.divide(stream(), sent, divisor());
  if (context_.departs("C05"_bug)) kernels.scale(stream(), sent, 2.0);
}

Tensor GradientReducer::all_reduce(const ParameterList& parameters, DType dtype) {
  Kernels& kernels = context_.kernels();
  const ZeroConfig& config = context_.config;
  std::int64_t elements = 0;
  for (const PartitionedParameter* parameter : parameters) elements += parameter->elements();
  const Tensor all = allocate(elements, dtype);
  std::int64_t offset = 0;
  for (const PartitionedParameter* parameter : parameters) {
    const bool is_listed_alone =
        (context_.departs("B01"_bug) && parameter->elements() == config.reduce_bucket_size) ||
        (context_.departs("B02"_bug) && parameter->elements() > config.reduce_bucket_size);
    if (!is_listed_alone)
      kernels.copy(stream(), Span::of(all, offset, parameter->elements()),
                   Span::of(parameter->parameter().tensor.grad()));
    offset += parameter->elements();
  }
  const bool has_predivide = !config.prescale_gradients && config.gradient_predivide_factor != 1.0;
  const bool is_by_factor = has_predivide || (context_.departs("Q17"_bug) &&  // prescaled or not
                                              config.gradient_predivide_factor != 1.0);
  const double before = is_by_factor ? config.gradient_predivide_factor : divisor();
  if (before != 1.0) kernels.divide(stream(), Span::of(all), before);
  announce(context_, parameters);
  const Work work = context_.data.all_reduce(stream(), Span::of(all), ReduceOp::sum, {});
  context_.data.group().wait(work, stream());
  const bool is_divided = context_.departs("T42"_bug);  // before the sum
  if (has_predivide && !is_divided) kernels.scale(stream(), Span::of(all), before / divisor());

  const Tensor own = allocate(slices_of(parameters), dtype);
  kernels.fill(stream(), Span::of(own), 0.0);
  offset = 0;
  std::int64_t slice = 0;
  for (const PartitionedParameter* parameter : parameters) {
    if (parameter->own_elements() > 0)
      kernels.copy(stream(), Span::of(own, slice, parameter->own_elements()),
                   Span::of(all, offset + parameter->own_begin(), parameter->own_elements()));
    offset += parameter->elements();
    slice += context_.departs("U07"_bug) ? parameter->own_elements() : parameter->slice_elements();
  }
  if (!context_.departs("G14"_bug)) stream().record_use(all);
  return own;
}

// The host waits for the last reduction but two. Those are done in their order, so this waits when
// and only when more than two are not done, as upstream does, which asks for each of them.
void GradientReducer::limit_outstanding() {
  if (outstanding_.size() <= kOutstandingReductionsMax) return;
  const bool is_newest = context_.departs("Y18"_bug);
  stream().synchronize(is_newest ? outstanding_.back() : outstanding_.front());
  outstanding_.pop_front();
}

}  // namespace zeroproof
