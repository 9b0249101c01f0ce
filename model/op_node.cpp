#include "model/op_node.h"

#include <algorithm>
#include <utility>

#include "model/accumulate_grad.h"
#include "model/autograd.h"
#include "model/tensor_impl.h"

namespace zeroproof {
namespace {

template <class Inputs, class Get>
std::shared_ptr<OpNode> make_node(Autograd& autograd, const OpNode::Formula& formula,
                                  const Inputs& inputs, Get get) {
  const auto needs = [&](const auto& input) { return get(input).requires_grad(); };
  if (!autograd.is_grad_enabled() || std::none_of(inputs.begin(), inputs.end(), needs))
    return nullptr;
  auto node = std::make_shared<OpNode>(autograd, autograd.take_sequence_nr(), formula);
  for (const auto& input : inputs) node->add_next_edge(gradient_edge(autograd, get(input)));
  return node;
}

}  // namespace

std::shared_ptr<OpNode> make_op_node(Autograd& autograd, const OpNode::Formula& formula,
                                     std::initializer_list<const Tensor*> inputs) {
  return make_node(autograd, formula, inputs,
                   [](const Tensor* input) -> const Tensor& { return *input; });
}

std::shared_ptr<OpNode> make_op_node(Autograd& autograd, const OpNode::Formula& formula,
                                     const TensorList& inputs) {
  return make_node(autograd, formula, inputs,
                   [](const Tensor& input) -> const Tensor& { return input; });
}

Tensor with_grad_fn(Tensor result, const std::shared_ptr<Node>& node) {
  if (!node) return result;
  result.impl().output_nr = node->add_input_metadata({result.sizes(), result.dtype()});
  result.impl().grad_fn = node;
  return result;
}

TensorList OpNode::apply(TensorList grads) {
  return formula_.backward(autograd(), *this, grads);
}

void OpNode::release_saved_tensors() {
  for (SavedTensor& saved : saved_) saved.release();
}

}  // namespace zeroproof
