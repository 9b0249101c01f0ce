#include "model/custom_function.h"

#include <algorithm>
#include <utility>

#include "model/accumulate_grad.h"
#include "model/autograd.h"
#include "model/op_node.h"

namespace zeroproof {

class CustomFunctionNode final : public Node {
 public:
  CustomFunctionNode(Autograd& autograd, const CustomFunction& function)
      : Node(autograd, autograd.take_sequence_nr()), function_(function) {}

  std::string_view name() const override { return function_.name; }

  TensorList apply(TensorList grads) override { return function_.backward(context_, grads[0]); }

  void release_saved_tensors() override {
    for (SavedTensor& saved : context_.saved_) saved.release();
  }

  Tensor forward(const TensorList& inputs) {
    context_.node_ = weak_from_this();
    return function_.forward(context_, inputs);
  }

  void keep_saved(const Tensor& output) {
    for (const Tensor& tensor : std::exchange(context_.to_save_, {}))
      context_.saved_.emplace_back(tensor, tensor.is_same(output));
  }

 private:
  CustomFunction function_;
  FunctionContext context_;
};

TensorList FunctionContext::saved_tensors() const {
  TensorList tensors;
  for (const SavedTensor& saved : saved_) tensors.push_back(saved.unpack(node_.lock()));
  return tensors;
}

Tensor apply_function(Autograd& autograd, const CustomFunction& function,
                      const TensorList& inputs) {
  const auto node = std::make_shared<CustomFunctionNode>(autograd, function);
  const bool is_differentiable =
      autograd.is_grad_enabled() &&
      std::any_of(inputs.begin(), inputs.end(), [](const Tensor& x) { return x.requires_grad(); });
  if (is_differentiable)
    for (const Tensor& input : inputs) node->add_next_edge(gradient_edge(autograd, input));
  Tensor output;
  {
    const GradMode no_grad(autograd, false);
    output = node->forward(inputs);
  }
  if (!is_differentiable) return output;
  output = with_grad_fn(output.detach(), node);
  node->keep_saved(output);
  return output;
}

}  // namespace zeroproof
