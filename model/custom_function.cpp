#include "model/custom_function.h"

#include <algorithm>
#include <utility>

#include "model/accumulate_grad.h"
#include "model/node_creation.h"
#include "model/op.h"
#include "model/transforms/layer.h"
#include "model/transforms/vmapped_function.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {

class CustomFunctionNode final : public Node {
 public:
  CustomFunctionNode(Autograd& autograd, CustomFunction function)
      : Node(autograd, autograd.take_sequence_nr()), function_(std::move(function)) {
    context_.function_name_ = function_.name;
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

  TensorList input_grad_buffers() const { return autograd().input_grad_buffers(*this); }

  // What the caller gets for outputs as forward returned them. One that is no tensor or not
  // differentiable takes up a slot of the node all the same.
  TensorList attach(const TensorList& plain) {
    const TensorList constant = std::exchange(context_.non_differentiable_, {});
    TensorList outputs;
    for (const Tensor& output : plain) {
      const auto is_it = [&](const Tensor& other) { return other.is_same(output); };
      is_differentiable_.push_back(output.is_defined() &&
                                   std::none_of(constant.begin(), constant.end(), is_it));
      outputs.push_back(output.is_defined() ? output.shallow_copy() : output);
      if (is_differentiable_.back()) {
        outputs.back() = with_grad_fn(outputs.back(), shared_from_this());
      } else {
        add_input_metadata(Tensor::full({}, 0.0));
      }
    }
    declare_grad_dtypes();
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
  void declare_grad_dtypes() {
    if (!context_.output_grad_dtypes_) return;
    const auto& declared = *context_.output_grad_dtypes_;
    if (declared.size() != is_differentiable_.size())
      throw AutogradError(
          "set_output_grad_dtype expected the number of declarations to match the number of "
          "outputs: the Function returned " +
          std::to_string(is_differentiable_.size()) + " values but " +
          std::to_string(declared.size()) + " declarations were provided");
    for (std::size_t i = 0; i < declared.size(); ++i)
      if (is_differentiable_[i]) set_grad_dtype(static_cast<std::uint32_t>(i), declared[i]);
  }

  static Tensor zeros_of(const InputMetadata& metadata) {
    return Tensor::full(metadata.sizes, 0.0, metadata.dtype).on(metadata.device);
  }

  CustomFunction function_;
  FunctionContext context_;
  std::vector<bool> is_differentiable_;  // one an output
};

TensorList FunctionContext::saved_tensors() const {
  if (given_) return *given_;
  TensorList tensors;
  for (const SavedTensor& saved : saved_) tensors.push_back(saved.unpack(node_.lock()));
  return tensors;
}

// A Function that runs under vmap has no node of its own.
TensorList FunctionContext::input_grad_buffers() const {
  const auto node = std::dynamic_pointer_cast<CustomFunctionNode>(node_.lock());
  if (!node)
    throw AutogradError(
        "input_grad_buffers can only be accessed from the currently executing autograd.Function "
        "backward()");
  return node->input_grad_buffers();
}

void FunctionContext::set_output_grad_dtype(std::vector<std::optional<DType>> dtypes) {
  if (output_grad_dtypes_) throw AutogradError("set_output_grad_dtype can only be called once");
  output_grad_dtypes_ = std::move(dtypes);
}

const std::any& FunctionContext::attribute(const std::string& name) const {
  const auto at = attributes_.find(name);
  if (at == attributes_.end())
    throw AutogradError("'" + function_name_ + "' object has no attribute '" + name + "'");
  return at->second;
}

namespace {

TensorList apply_layers(Autograd& ag, const CustomFunction& function, const TensorList& inputs);

// At one level: level 0, or a Grad level whose forward_alone is all the levels below.
TensorList apply_at_level(Autograd& ag, const CustomFunction& function, const TensorList& inputs) {
  const auto node = std::make_shared<CustomFunctionNode>(ag, function);
  const auto needs_grad = [](const Tensor& x) { return x.is_defined() && x.requires_grad(); };
  const bool is_differentiable =
      ag.is_grad_enabled() && std::any_of(inputs.begin(), inputs.end(), needs_grad);
  if (is_differentiable)
    for (const Tensor& input : inputs)
      node->add_next_edge(input.is_defined() ? gradient_edge(ag, input) : Edge{});
  TensorList plain;
  {
    const GradMode no_grad(ag, false);
    plain = node->forward(inputs);
  }
  if (!is_differentiable) return plain;
  TensorList outputs = node->attach(plain);
  node->keep_saved(plain, outputs);
  tell_node_creation(ag, *node);
  return outputs;
}

std::string generated_name(const std::string& name) {
  constexpr std::string_view kSuffix = "Backward";
  const bool has_suffix = name.ends_with(kSuffix);
  return name.substr(0, name.size() - (has_suffix ? kSuffix.size() : 0)) + "GeneratedBackward";
}

// Grad mode is on below, unless it was off where the transform was entered (rule T2).
TensorList apply_generated(Autograd& ag, const CustomFunction& function, const TensorList& inputs) {
  const std::shared_ptr<const TransformFrame> frame = ag.local().transforms;
  CustomFunction generated = function;
  generated.name = generated_name(function.name);
  generated.forward_alone = [&ag, function, frame](const TensorList& wrappers) {
    const GradMode enabled(ag, true);
    TensorList inner;
    for (const Tensor& wrapper : wrappers) inner.push_back(unwrap(wrapper, *frame));
    const LowerLayer lower(ag);
    TensorList outputs = apply_layers(ag, function, inner);
    for (Tensor& output : outputs)
      if (output.is_defined()) output = wrap(*frame, output);
    return outputs;
  };
  TensorList wrappers = inputs;
  for (Tensor& input : wrappers)
    if (input.is_defined() && !is_of_level(input, *frame)) input = wrap(*frame, input);
  return apply_at_level(ag, generated, wrappers);
}

TensorList apply_jvp_layer(Autograd& ag, const CustomFunction& function, const TensorList& inputs) {
  const std::shared_ptr<const TransformFrame> frame = ag.local().transforms;
  TensorList outputs = apply_generated(ag, function, inputs);
  for (const Tensor& input : inputs)
    if (is_of_level(input, *frame) && input.wrapper()->tangent.is_defined())
      throw AutogradError(
          "You must implement the jvp function for custom autograd.Function to use it with "
          "forward mode AD.");
  return outputs;
}

TensorList apply_vmap_layer(Autograd& ag, const CustomFunction& function, TensorList inputs) {
  const std::shared_ptr<const TransformFrame> frame = ag.local().transforms;
  if (function.vmap && function.generates_vmap_rule)
    throw AutogradError(function.name + ": generate_vmap_rule=True and a vmap rule of its own");
  if (!function.vmap && !function.generates_vmap_rule)
    throw AutogradError("You tried to vmap over " + function.name +
                        ", but it does not have vmap support");
  std::vector<bool> is_batched;
  for (Tensor& input : inputs) {
    is_batched.push_back(is_of_level(input, *frame));
    input = unwrap(input, *frame);
  }
  const LowerLayer lower(ag);
  const bool has_batch = std::find(is_batched.begin(), is_batched.end(), true) != is_batched.end();
  if (function.vmap && !has_batch) return apply_layers(ag, function, inputs);
  if (function.vmap) {
    TensorList outputs = function.vmap({inputs, is_batched, frame->batch_size});
    for (Tensor& output : outputs)
      if (output.is_defined()) output = wrap(*frame, output);
    return outputs;
  }
  const auto vmapped =
      std::make_shared<VmappedFunction>(ag, function, is_batched, frame->batch_size);
  TensorList outputs = apply_layers(ag, vmapped_function(vmapped), inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (vmapped->is_output_batched(i)) outputs[i] = wrap(*frame, outputs[i]);
  return outputs;
}

TensorList apply_layers(Autograd& ag, const CustomFunction& function, const TensorList& inputs) {
  const std::shared_ptr<const TransformFrame> frame = ag.local().transforms;
  if (!frame) return apply_at_level(ag, function, inputs);
  switch (frame->kind) {
    case TransformKind::grad:
      return apply_generated(ag, function, inputs);
    case TransformKind::vmap:
      return apply_vmap_layer(ag, function, inputs);
    case TransformKind::jvp:
      break;
  }
  return apply_jvp_layer(ag, function, inputs);
}

}  // namespace

TensorList apply_function(Autograd& autograd, const CustomFunction& function,
                          const TensorList& inputs) {
  if (autograd.local().transforms && !function.is_split())
    throw AutogradError(
        "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, "
        "...), it must override the setup_context staticmethod");
  TensorList live;
  for (const Tensor& input : inputs) live.push_back(without_dead_wrappers(input));
  return apply_layers(autograd, function, live);
}

}  // namespace zeroproof
