#include "engine/zero/stage0.h"

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
  for (std::size_t i = 0; i < group.parameters().size(); ++i) {
    Tensor& sum = accumulated(*group.parameters()[i]);
    const FlatRange range = group.partition().parameter(i);
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
  context_.clear_grads();
  return true;
}

StepOutcome Stage0Optimizer::step() {
  const StepOutcome outcome = update_groups();
  drop_windows();
  return outcome;
}

void Stage0Optimizer::load(const std::vector<FullTensor>& parameters,
                           const std::vector<FullTensor>& states) {
  load_groups(parameters, states);
  drop_windows();
}

}  // namespace zeroproof
