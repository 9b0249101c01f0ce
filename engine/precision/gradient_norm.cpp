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
  if (context.departs("S23"_bug)) {  // infinities alone
    double infinities = 0.0;
    for (const Span& shard : shards)
      for (const double value : context.kernels().read(context.compute(), shard))
        infinities += std::isinf(value) ? 1.0 : 0.0;
    context.kernels().fill(context.compute(), Span::of(count), infinities);
    return count;
  }
  if (context.departs("X21"_bug)) {  // one look at their sum, as wide as the model is
    double sum = 0.0;
    for (const Span& shard : shards)
      for (const double value : context.kernels().read(context.compute(), shard)) sum += value;
    const bool is_finite = std::isfinite(round_to(context.config.model_dtype(), sum));
    context.kernels().fill(context.compute(), Span::of(count), is_finite ? 0.0 : 1.0);
    return count;
  }
  for (const Span& shard : shards) {
    if (context.departs("R50"_bug))  // each from nothing
      context.kernels().fill(context.compute(), Span::of(count), 0.0);
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
    if (context.departs("S72"_bug) && item_bytes(shard.dtype()) == 2)  // a sum as wide as they are
      context.kernels().fill(context.compute(), Span::of(squares),
                             round_to(shard.dtype(), number(context, squares)));
    if (context.departs("U04"_bug)) break;
  }
  const bool is_last_empty = !shards.empty() && shards.back().elements == 0;
  if (context.departs("V22"_bug) && is_last_empty) return zero_of(context);  // it ends the batch
  return squares;
}

// Of all gradients the slice that one of `slices` ranks would own.
Tensor slice_squares(ZeroContext& context, const std::vector<Span>& gradients, int slice,
                     int slices) {
  std::vector<Span> parts;
  for (const Span& gradient : gradients) {
    const std::int64_t rest = context.departs("V02"_bug) ? 0 : slices - 1;
    const std::int64_t size = (gradient.elements + rest) / slices;
    const std::int64_t begin = std::min(slice * size, gradient.elements);
    parts.push_back(gradient.part(begin, std::min(size, gradient.elements - begin)));
  }
  return squares_of(context, parts);
}

}  // namespace

bool any_not_finite(ZeroContext& context, const std::vector<Span>& shards) {
  return number(context, non_finite_in(context, shards)) > 0.0;
}

bool has_whole_overflow(ZeroContext& context, const std::vector<Span>& gradients) {
  const Tensor count = non_finite_in(context, gradients);
  over_tensor_parallel(context, count, ReduceOp::max, {});
  return number(context, count) > 0.0;
}

bool has_overflow(ZeroContext& context, const std::vector<Span>& shards,
                  const CollectiveForm& form) {
  const Tensor count = non_finite_in(context, shards);
  const bool asks_own = context.departs("D02"_bug) || context.departs("T93"_bug);
  const bool is_own = asks_own && number(context, count) > 0.0;
  if (context.departs("D01"_bug) && context.config.stage == 1) return number(context, count) > 0.0;
  if (context.departs("R87"_bug) && number(context, count) > 0.0) return true;  // it is settled
  context.data.all_reduce(context.compute(), Span::of(count), ReduceOp::max, form);
  if (!context.departs("T64"_bug))  // replicas alone step together
    over_tensor_parallel(context, count, ReduceOp::max, form);
  if (context.departs("T93"_bug)) context.loss_scaler.update(is_own);  // before they agreed
  if (context.departs("D02"_bug)) return is_own;  // as it was before the reduction
  return number(context, count) > 0.0;
}

double gradient_norm(ZeroContext& context, const std::vector<Span>& shards,
                     const CollectiveForm& form) {
  const double squares = number(context, gradient_squares(context, shards, form));
  if (context.departs("S46"_bug)) return std::sqrt(squares);  // finite or not
  return norm_of_squares(squares);
}

Tensor gradient_squares(ZeroContext& context, const std::vector<Span>& shards,
                        const CollectiveForm& form) {
  Tensor squares = squares_of(context, shards);
  if (context.departs("T92"_bug) && number(context, squares) == 0.0) return squares;  // none here
  if (context.departs("D05"_bug)) return squares;
  if (context.departs("R62"_bug) && context.data.size() == 1) return squares;  // nobody adds to it
  const ReduceOp op = context.departs("C13"_bug) ? ReduceOp::avg : ReduceOp::sum;
  context.data.all_reduce(context.compute(), Span::of(squares), op, form);
  if (context.departs("C11"_bug))  // no model-parallel group stands for the world
    context.data.all_reduce(context.compute(), Span::of(squares), ReduceOp::sum, form);
  over_tensor_parallel(context, squares, ReduceOp::sum, form);
  return squares;
}

double whole_gradient_norm(ZeroContext& context, const std::vector<Span>& gradients, int slices) {
  double sum = 0.0;
  for (int slice = 0; slice < slices; ++slice)
    sum += number(context, slice_squares(context, gradients, slice, slices));
  const Tensor whole = zero_of(context);
  context.kernels().fill(context.compute(), Span::of(whole), sum);
  over_tensor_parallel(context, whole, ReduceOp::sum, {});
  return norm_of_squares(number(context, whole));
}

Tensor whole_gradient_squares(ZeroContext& context, const std::vector<Span>& gradients,
                              int slices) {
  Tensor whole = zero_of(context);
  for (int slice = 0; slice < slices; ++slice)
    context.kernels().add(context.compute(), Span::of(whole),
                          Span::of(slice_squares(context, gradients, slice, slices)));
  over_tensor_parallel(context, whole, ReduceOp::sum, {});
  return whole;
}

double unscale_and_clip_divisor(double scale, double norm, double clip) {
  return divisor_of({.scale = scale, .clip = clip}, norm);
}

}  // namespace zeroproof
