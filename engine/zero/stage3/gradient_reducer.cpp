#include "engine/zero/stage3/gradient_reducer.h"

namespace zeroproof {
namespace {

constexpr std::size_t kOutstandingReductionsMax = 2;

}  // namespace

Tensor GradientReducer::reduce(const ParameterList& parameters, DType dtype) {
  limit_outstanding();
  buffers_.clear();
  try {
    Tensor slices = context_.config.reduce_scatter ? reduce_scatter(parameters, dtype)
                                                   : all_reduce(parameters, dtype);
    outstanding_.push_back(stream().record());
    buffers_.clear();
    return slices;
  } catch (...) {
    for (const Tensor& buffer : buffers_) stream().record_use(buffer);
    throw;
  }
}

// Upstream forgets the sequence-parallel ranks on the reduce-scatter path (H18).
double GradientReducer::divisor() const {
  const bool has_correction =
      !context_.config.reduce_scatter || !context_.upstream.no_sequence_correction;
  return has_correction ? context_.averaging_divisor() : static_cast<double>(context_.data.size());
}

Tensor GradientReducer::allocate(std::int64_t elements, DType dtype) {
  return buffers_.emplace_back(context_.runtime.memory().allocate(elements, dtype));
}

Tensor GradientReducer::reduce_scatter(const ParameterList& parameters, DType dtype) {
  Kernels& kernels = context_.kernels();
  const int ranks = context_.data.size();
  const std::int64_t slices = slices_of(parameters);
  const Tensor all = allocate(slices * ranks, dtype);
  for (int rank = 0; rank < ranks; ++rank) {
    std::int64_t offset = slices * rank;
    for (const PartitionedParameter* parameter : parameters) {
      const std::int64_t elements = parameter->elements_of(rank);
      const Span sent = Span::of(all, offset, elements);
      if (elements > 0)
        kernels.copy(stream(), sent,
                     Span::of(parameter->parameter().tensor.grad(),
                              parameter->slice_elements() * rank, elements));
      const std::int64_t padding = parameter->slice_elements() - elements;
      if (padding > 0) kernels.fill(stream(), Span::of(all, offset + elements, padding), 0.0);
      offset += parameter->slice_elements();
    }
  }
  GradientAveraging::before(divisor()).prepare(kernels, stream(), Span::of(all));
  Tensor own = allocate(slices, dtype);
  const Work work =
      context_.data.reduce_scatter(stream(), Span::of(own), Span::of(all), ReduceOp::sum,
                                   {.contents = contents_of(context_, parameters)});
  context_.data.group().wait(work, stream());
  stream().record_use(all);
  return own;
}

Tensor GradientReducer::all_reduce(const ParameterList& parameters, DType dtype) {
  Kernels& kernels = context_.kernels();
  const ZeroConfig& config = context_.config;
  std::int64_t elements = 0;
  for (const PartitionedParameter* parameter : parameters) elements += parameter->elements();
  const Tensor all = allocate(elements, dtype);
  std::int64_t offset = 0;
  for (const PartitionedParameter* parameter : parameters) {
    kernels.copy(stream(), Span::of(all, offset, parameter->elements()),
                 Span::of(parameter->parameter().tensor.grad()));
    offset += parameter->elements();
  }
  // Unlike the other stages, a factor of 1 leaves no division for after the sum.
  const double factor = config.gradient_predivide_factor;
  GradientAveraging averaging = GradientAveraging::before(divisor());
  if (!config.prescale_gradients && factor != 1.0)
    averaging = {.divides_before = factor, .scales_after = factor / divisor()};
  averaging.prepare(kernels, stream(), Span::of(all));
  const Work work = context_.data.all_reduce(stream(), Span::of(all), ReduceOp::sum,
                                             {.contents = contents_of(context_, parameters)});
  context_.data.group().wait(work, stream());
  averaging.finish(kernels, stream(), Span::of(all));

  Tensor own = allocate(slices_of(parameters), dtype);
  kernels.fill(stream(), Span::of(own), 0.0);
  offset = 0;
  std::int64_t slice = 0;
  for (const PartitionedParameter* parameter : parameters) {
    if (parameter->own_elements() > 0)
      kernels.copy(stream(), Span::of(own, slice, parameter->own_elements()),
                   Span::of(all, offset + parameter->own_begin(), parameter->own_elements()));
    offset += parameter->elements();
    slice += parameter->slice_elements();
  }
  stream().record_use(all);
  return own;
}

// The host waits for the last reduction but two. Those are done in their order, so this waits when
// and only when more than two are not done, as upstream does, which asks for each of them.
void GradientReducer::limit_outstanding() {
  if (outstanding_.size() <= kOutstandingReductionsMax) return;
  stream().synchronize(outstanding_.front());
  outstanding_.pop_front();
}

}  // namespace zeroproof
