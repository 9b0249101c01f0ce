#include "model/transforms/vmapped_function.h"

#include <utility>

#include "model/transforms/layer.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

TensorList batched(const TransformFrame& frame, TensorList tensors,
                   const std::vector<bool>& is_batched) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].is_defined() && is_batched.at(i)) tensors[i] = wrap(frame, tensors[i]);
  return tensors;
}

struct Unbatched {
  TensorList tensors;
  std::vector<bool> is_batched;
};

Unbatched unbatched(const TransformFrame& frame, const TensorList& tensors) {
  Unbatched result;
  for (const Tensor& tensor : tensors) {
    result.is_batched.push_back(is_of_level(tensor, frame));
    result.tensors.push_back(unwrap(tensor, frame));
  }
  return result;
}

}  // namespace

// What setup_context leaves for backward beside the Function's own attributes, in the context of
// the level it ran at.
struct VmappedFunction::Kept {
  std::vector<bool> is_saved_batched;
  std::vector<Shape> input_sizes;  // of one example
};

VmappedFunction::VmappedFunction(Autograd& ag, CustomFunction function,
                                 std::vector<bool> is_batched, std::int64_t batch_size)
    : ag_(ag),
      function_(std::move(function)),
      is_batched_(std::move(is_batched)),
      batch_size_(batch_size),
      name_("Vmapped" + function_.name) {}

TensorList VmappedFunction::forward(const TensorList& inputs) {
  const TransformLevel level(ag_, TransformKind::vmap, batch_size_);
  const TensorList outputs = function_.forward_alone(batched(level.frame(), inputs, is_batched_));
  Unbatched result = unbatched(level.frame(), outputs);
  is_output_batched_ = std::move(result.is_batched);
  return std::move(result.tensors);
}

void VmappedFunction::setup_context(FunctionContext& context, const TensorList& inputs,
                                    const TensorList& outputs) const {
  const TransformLevel level(ag_, TransformKind::vmap, batch_size_);
  const TensorList examples = batched(level.frame(), inputs, is_batched_);
  FunctionContext inner;
  inner.function_name_ = context.function_name_;
  function_.setup_context(inner, examples, batched(level.frame(), outputs, is_output_batched_));
  Unbatched saved = unbatched(level.frame(), inner.to_save_);
  Kept kept{std::move(saved.is_batched), {}};
  for (const Tensor& example : examples)
    kept.input_sizes.push_back(example.is_defined() ? example.sizes() : Shape{});
  context.attributes_ = std::move(inner.attributes_);
  context.materializes_grads_ = inner.materializes_grads_;
  context.save_for_backward(std::move(saved.tensors));
  context.set(name_, std::move(kept));
}

TensorList VmappedFunction::backward(FunctionContext& context, const TensorList& grads) const {
  const Kept kept = context.get<Kept>(name_);
  const TensorList saved = context.saved_tensors();
  Unbatched result;
  {
    const TransformLevel level(ag_, TransformKind::vmap, batch_size_);
    FunctionContext inner;
    inner.function_name_ = context.function_name_;
    inner.attributes_ = context.attributes_;
    inner.given_ = batched(level.frame(), saved, kept.is_saved_batched);
    result =
        unbatched(level.frame(),
                  function_.backward(inner, batched(level.frame(), grads, is_output_batched_)));
  }
  for (std::size_t i = 0; i < result.tensors.size() && i < is_batched_.size(); ++i) {
    Tensor& grad = result.tensors[i];
    if (grad.is_defined()) grad = to_input(grad, result.is_batched[i], i, kept.input_sizes[i]);
  }
  return std::move(result.tensors);
}

// A gradient with a batch for an input without one is summed over it. For an input with one, each
// example's gradient is summed down to the example's sizes.
Tensor VmappedFunction::to_input(const Tensor& grad, bool is_grad_batched, std::size_t input,
                                 const Shape& sizes) const {
  if (!is_batched_[input]) return is_grad_batched ? sum(ag_, grad, {0}, KeepDim::no) : grad;
  Tensor whole = grad;
  if (!is_grad_batched) {
    Shape repeated = grad.sizes();
    repeated.insert(repeated.begin(), batch_size_);
    whole = expand(ag_, unsqueeze(ag_, grad, 0), repeated);
  }
  const TransformLevel level(ag_, TransformKind::vmap, batch_size_);
  return unwrap(sum_to(ag_, wrap(level.frame(), whole), sizes), level.frame());
}

CustomFunction vmapped_function(const std::shared_ptr<VmappedFunction>& vmapped) {
  CustomFunction function;
  function.name = vmapped->name();
  function.forward_alone = [vmapped](const TensorList& inputs) { return vmapped->forward(inputs); };
  function.setup_context = [vmapped](FunctionContext& context, const TensorList& inputs,
                                     const TensorList& outputs) {
    vmapped->setup_context(context, inputs, outputs);
  };
  function.backward = [vmapped](FunctionContext& context, const TensorList& grads) {
    return vmapped->backward(context, grads);
  };
  function.generates_vmap_rule = true;
  return function;
}

}  // namespace zeroproof
