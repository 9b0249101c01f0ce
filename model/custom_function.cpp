#include "model/custom_function.h"

#include <algorithm>
#include <utility>

#include "model/accumulate_grad.h"
#include "model/autograd.h"
#include "model/autograd_error.h"
#include "model/op.h"

namespace zeroproof {

class CustomFunctionNode final : public Node {
 public:
  CustomFunctionNode(Autograd& autograd, const CustomFunction& function)
      : Node(autograd, autograd.take_sequence_nr()), function_(function) {
    context_.function_name_ = function.name;
  }

  std::string_view name() const override { return function_.name; }

  TensorList apply(TensorList grads) override {
    if (context_.materializes_grads_)
      for (std::size_t i = 0; i < grads.size(); ++i)
        if (!grads[i].is_defined() && is_differentiable_[i])
          grads[i] = zeros_of(input_metadata()[i]);
    return function_.backward(context_, grads);
  }

  void release_saved_tensors() override {
    for (SavedTensor& saved : context_.saved_) saved.release();
  }

  TensorList forward(const TensorList& inputs) {
    context_.node_ = weak_from_this();
    if (!function_.is_split()) return function_.forward(context_, inputs);
    TensorList outputs = function_.forward_alone(inputs);
    function_.setup_context(context_, inputs, outputs);
    return outputs;
  }

  // What the caller gets for outputs as forward returned them. One that is no tensor or not
  // differentiable takes up a slot of the node all the same.
  TensorList attach(const TensorList& plain) {
    const TensorList constant = std::exchange(context_.non_differentiable_, {});
    TensorList outputs;
    for (const Tensor& output : plain) {
      const auto is_it = [&](const Tensor& other) { return other.is_same(output); };
      is_differentiable_.push_back(output.is_defined() &&
                                   std::none_of(constant.begin(), constant.end(), is_it));
      outputs.push_back(output.is_defined() ? output.detach() : output);
      if (is_differentiable_.back()) {
        outputs.back() = with_grad_fn(outputs.back(), shared_from_this());
      } else {
        add_input_metadata(Tensor::full({}, 0.0));
      }
    }
    return outputs;
  }

  // `plain` are the outputs as forward returned them, `outputs` what the caller gets.
  void keep_saved(const TensorList& plain, const TensorList& outputs) {
    for (const Tensor& tensor : std::exchange(context_.to_save_, {})) {
      const auto is_it = [&](const Tensor& output) {
        return tensor.is_defined() && output.is_same(tensor);
      };
      const auto at = std::find_if(plain.begin(), plain.end(), is_it);
      const bool is_output = at != plain.end();
      const Tensor& kept =
          is_output ? outputs[static_cast<std::size_t>(at - plain.begin())] : tensor;
      context_.saved_.emplace_back(autograd(), kept, is_output);
    }
  }

 private:
  static Tensor zeros_of(const InputMetadata& metadata) {
    return Tensor::full(metadata.sizes, 0.0, metadata.dtype).on(metadata.device);
  }

  CustomFunction function_;
  FunctionContext context_;
  std::vector<bool> is_differentiable_;  // one an output
};

TensorList FunctionContext::saved_tensors() const {
  TensorList tensors;
  for (const SavedTensor& saved : saved_) tensors.push_back(saved.unpack(node_.lock()));
  return tensors;
}

const std::any& FunctionContext::attribute(const std::string& name) const {
  const auto at = attributes_.find(name);
  if (at == attributes_.end())
    throw AutogradError("'" + function_name_ + "' object has no attribute '" + name + "'");
  return at->second;
}

TensorList apply_function(Autograd& autograd, const CustomFunction& function,
                          const TensorList& inputs) {
  const auto node = std::make_shared<CustomFunctionNode>(autograd, function);
  const auto needs_grad = [](const Tensor& x) { return x.is_defined() && x.requires_grad(); };
  const bool is_differentiable =
      autograd.is_grad_enabled() && std::any_of(inputs.begin(), inputs.end(), needs_grad);
  if (is_differentiable)
    for (const Tensor& input : inputs)
      node->add_next_edge(input.is_defined() ? gradient_edge(autograd, input) : Edge{});
  TensorList plain;
  {
    const GradMode no_grad(autograd, false);
    plain = node->forward(inputs);
  }
  if (!is_differentiable) return plain;
  const TensorList outputs = node->attach(plain);
  node->keep_saved(plain, outputs);
  return outputs;
}

}  // namespace zeroproof
