#include "engine/zero/stage0.h"

#include <algorithm>
#include <cmath>

#include "engine/precision/gradient_norm.h"

namespace zeroproof {

Stage0Optimizer::Stage0Optimizer(ZeroContext& context) : FlatOptimizer(context, 1, 0) {}

void Stage0Optimizer::reduce_gradients() {
  if (context_.is_boundary && context_.config.managed_gradient_accumulation) reduce();
}

void Stage0Optimizer::reduce() {
  const Events::Call call(context_.events, "engine.buffered_allreduce_fallback");
  for (FlatGroup& group : groups_) {
    reduce(group);
  }
}

// In the window itself where that is empty and as wide as the wire.
void Stage0Optimizer::reduce(FlatGroup& group) {
  const ZeroConfig& config = context_.config;
  Kernels& kernels = context_.kernels();
  Stream& stream = context_.compute();
  const DType wire = config.communication_dtype();
  const std::int64_t padding = group.partition().padding();
  const std::int64_t elements = group.partition().elements() - padding;
  if (!group.has_accumulated() && group.grad_accumulator().dtype() == wire &&
      !config.is_offloaded()) {
    const Span window = group.overwrite_accumulator();
    kernels.fill(stream, window.part(elements, padding), 0.0);
    all_reduce(flatten(group, window.part(0, elements)));
    group.mark_accumulated();
    return;
  }
  const Tensor buffer = context_.runtime.memory().allocate(elements, wire);
  const Span all = all_reduce(flatten(group, Span::of(buffer)));
  const Span sum = group.add_to_accumulator().part(0, elements);
  kernels.add(stream, sum, all);
}

// The local sums, each at its place; zeros where there is none.
Span Stage0Optimizer::flatten(FlatGroup& group, Span target) {
  Kernels& kernels = context_.kernels();
  std::int64_t next = 0;
  for (std::size_t i = 0; i < group.parameters().size(); ++i) {
    Tensor& sum = accumulated(*group.parameters()[i]);
    FlatRange range = group.partition().parameter(i);
    if (sum.is_defined()) next += range.elements;
    const Span place = target.part(range.begin, range.elements);
    if (sum.is_defined())
      kernels.copy(context_.compute(), place, Span::of(sum));
    else
      kernels.fill(context_.compute(), place, 0.0);
    sum = {};
  }
  return target;
}

Span Stage0Optimizer::all_reduce(Span all) {
  if (all.elements == 0) return all;  // a group of parameters without elements
  Kernels& kernels = context_.kernels();
  Stream& stream = context_.compute();
  const GradientAveraging averaging = context_.averaging(context_.config.prescale_gradients);
  averaging.prepare(kernels, stream, all);
  context_.data.all_reduce(stream, all, ReduceOp::sum, {.is_default_group = true});
  averaging.finish(kernels, stream, all);
  return all;
}

// Only .grad of the failed backward: earlier ones were collected.
bool Stage0Optimizer::abandon_gradients() {
  clear_grads();
  return true;
}

// Every rank has the whole gradient, so none needs the others; upstream's clipping of float32
// models asks them all the same.
double Stage0Optimizer::norm() {
  double norm = whole_gradient_norm(context_, grad_accumulators(), context_.data.size());
  if (context_.config.model_dtype() == DType::float32) {
    const Tensor agreed = context_.runtime.memory().allocate(1, DType::float64);
    context_.kernels().fill(context_.compute(), Span::of(agreed), norm);
    agree_on(agreed);
  }
  return norm;
}

void Stage0Optimizer::agree_on(const Tensor& norm) {
  context_.data.all_reduce(context_.compute(), Span::of(norm), ReduceOp::max,
                           {.is_default_group = true, .bytes = 4});
}

Tensor Stage0Optimizer::squares() {
  Tensor squares = whole_gradient_squares(context_, grad_accumulators(), context_.data.size());
  if (context_.config.model_dtype() == DType::float32) agree_on(squares);
  return squares;
}

bool Stage0Optimizer::overflows() {
  return has_whole_overflow(context_, grad_accumulators());
}

}  // namespace zeroproof
