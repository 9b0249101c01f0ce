#include "engine/precision/gradient_norm.h"

#include <algorithm>
#include <cmath>

namespace zeroproof {
namespace {

Tensor zero_of(ZeroContext& context) {
  Tensor number = context.runtime.memory().allocate(1, DType::float64);
  context.kernels().fill(context.compute(), Span::of(number), 0.0);
  return number;
}

Tensor non_finite_in(ZeroContext& context, const std::vector<Span>& shards) {
  Tensor count = zero_of(context);
  for (const Span& shard : shards) {
    context.kernels().count_non_finite(context.compute(), Span::of(count), shard);
  }
  return count;
}

double number(ZeroContext& context, const Tensor& tensor) {
  return context.kernels().read(context.compute(), Span::of(tensor)).front();
}

void over_tensor_parallel(ZeroContext& context, const Tensor& tensor, ReduceOp op,
                          const CollectiveForm& form) {
  if (context.tensor.size() > 1)
    context.tensor.all_reduce(context.compute(), Span::of(tensor), op, {.bytes = form.bytes});
}

Tensor squares_of(ZeroContext& context, const std::vector<Span>& shards) {
  Tensor squares = zero_of(context);
  for (const Span& shard : shards) {
    context.kernels().add_squares(context.compute(), Span::of(squares), shard);
  }
  return squares;
}

// Of all gradients the slice that a rank would own.
Tensor slice_squares(ZeroContext& context, const std::vector<Span>& gradients, int slice) {
  const int slices = context.data.size();
  std::vector<Span> parts;
  for (const Span& gradient : gradients) {
    const std::int64_t rest = slices - 1;
    const std::int64_t size = (gradient.elements + rest) / slices;
    const std::int64_t begin = std::min(slice * size, gradient.elements);
    parts.push_back(gradient.part(begin, std::min(size, gradient.elements - begin)));
  }
  return squares_of(context, parts);
}

// Upstream's clipping of float32 models asks all ranks, though each knows.
void agree_on(ZeroContext& context, const Tensor& squares) {
  const ZeroConfig& config = context.config;
  if (config.model_dtype() != DType::float32 || config.gradient_clipping <= 0.0) return;
  context.data.all_reduce(context.compute(), Span::of(squares), ReduceOp::max,
                          {.is_default_group = true, .bytes = 4});
}

bool has_whole_overflow(ZeroContext& context, const std::vector<Span>& gradients) {
  const Tensor count = non_finite_in(context, gradients);
  over_tensor_parallel(context, count, ReduceOp::max, {});
  return number(context, count) > 0.0;
}

double whole_gradient_norm(ZeroContext& context, const std::vector<Span>& gradients) {
  double sum = 0.0;
  for (int slice = 0; slice < context.data.size(); ++slice)
    sum += number(context, slice_squares(context, gradients, slice));
  const Tensor whole = zero_of(context);
  context.kernels().fill(context.compute(), Span::of(whole), sum);
  over_tensor_parallel(context, whole, ReduceOp::sum, {});
  agree_on(context, whole);
  return norm_of_squares(number(context, whole));
}

Tensor whole_gradient_squares(ZeroContext& context, const std::vector<Span>& gradients) {
  Tensor whole = zero_of(context);
  for (int slice = 0; slice < context.data.size(); ++slice)
    context.kernels().add(context.compute(), Span::of(whole),
                          Span::of(slice_squares(context, gradients, slice)));
  over_tensor_parallel(context, whole, ReduceOp::sum, {});
  agree_on(context, whole);
  return whole;
}

}  // namespace

bool any_not_finite(ZeroContext& context, const std::vector<Span>& shards) {
  return number(context, non_finite_in(context, shards)) > 0.0;
}

bool has_overflow(ZeroContext& context, const GradientShards& gradient) {
  if (gradient.is_whole) return has_whole_overflow(context, gradient.spans);
  const CollectiveForm form{.is_default_group = true, .bytes = gradient.overflow_bytes};
  const Tensor count = non_finite_in(context, gradient.spans);
  context.data.all_reduce(context.compute(), Span::of(count), ReduceOp::max, form);
  over_tensor_parallel(context, count, ReduceOp::max, form);
  return number(context, count) > 0.0;
}

double gradient_norm(ZeroContext& context, const GradientShards& gradient) {
  if (gradient.is_whole) return whole_gradient_norm(context, gradient.spans);
  const double squares = number(context, gradient_squares(context, gradient));
  return norm_of_squares(squares);
}

Tensor gradient_squares(ZeroContext& context, const GradientShards& gradient) {
  if (gradient.is_whole) return whole_gradient_squares(context, gradient.spans);
  const CollectiveForm form{.is_default_group = true, .bytes = gradient.norm_bytes};
  Tensor squares = squares_of(context, gradient.spans);
  context.data.all_reduce(context.compute(), Span::of(squares), ReduceOp::sum, form);
  over_tensor_parallel(context, squares, ReduceOp::sum, form);
  return squares;
}

double unscale_and_clip_divisor(double scale, double norm, double clip) {
  return divisor_of({.scale = scale, .clip = clip}, norm);
}

}  // namespace zeroproof
