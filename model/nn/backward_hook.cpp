#include "model/nn/backward_hook.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model/custom_function.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof::nn {
namespace {

// PyTorch's BackwardHookFunction: what needs no gradient comes out without one. In the split form,
// unlike PyTorch's, so that a module with backward hooks passes through function transforms.
const CustomFunction& identity() {
  static const CustomFunction kIdentity = {
      .name = "BackwardHookFunctionBackward",
      .backward = [](FunctionContext&, const TensorList& grads) { return grads; },
      .forward_alone = [](const TensorList& inputs) { return inputs; },
      .setup_context =
          [](FunctionContext& ctx, const TensorList& inputs, const TensorList& outputs) {
            TensorList constant;
            for (std::size_t i = 0; i < inputs.size(); ++i)
              if (!inputs[i].requires_grad()) constant.push_back(outputs[i]);
            ctx.mark_non_differentiable(std::move(constant));
          },
      .generates_vmap_rule = true};
  return kIdentity;
}

void check_count(const char* what, const TensorList& given, std::size_t expected) {
  if (given.size() == expected) return;
  throw AutogradError(std::string(what) + ", got " + std::to_string(given.size()) +
                      ", but expected " + std::to_string(expected));
}

}  // namespace

TensorList BackwardHook::Arguments::pack(const TensorList& of_tensors) const {
  TensorList all(count);
  for (std::size_t i = 0; i < tensors.size(); ++i) all[tensors[i]] = of_tensors[i];
  return all;
}

TensorList BackwardHook::Arguments::unpack(const TensorList& of_all) const {
  TensorList picked;
  for (const std::size_t index : tensors) picked.push_back(of_all[index]);
  return picked;
}

// None, and `tensors` as they were, when there is no gradient to see.
std::optional<BackwardHook::Arguments> BackwardHook::put_behind_identity(
    Autograd& autograd, TensorList& tensors, const Node::PostHook& hook) {
  Arguments arguments{.count = tensors.size()};
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].is_defined()) arguments.tensors.push_back(i);
  const TensorList defined = arguments.unpack(tensors);
  const auto needs_grad = [](const Tensor& tensor) { return tensor.requires_grad(); };
  if (!autograd.is_grad_enabled() || std::none_of(defined.begin(), defined.end(), needs_grad))
    return std::nullopt;
  const TensorList behind = apply_function(autograd, identity(), defined);
  std::find_if(behind.begin(), behind.end(), needs_grad)->grad_fn()->register_hook(hook);
  tensors = arguments.pack(behind);
  return arguments;
}

TensorList BackwardHook::setup_input_hook(Autograd& autograd, const TensorList& inputs) {
  TensorList behind = inputs;
  const auto hook = [self = shared_from_this()](const TensorList& grad_inputs, const TensorList&) {
    return self->on_grad_inputs(grad_inputs);
  };
  input_count_ = inputs.size();
  inputs_ = put_behind_identity(autograd, behind, hook);
  return behind;
}

TensorList BackwardHook::setup_output_hook(Autograd& autograd, const TensorList& outputs) {
  TensorList behind = outputs;
  const auto hook = [self = shared_from_this()](const TensorList&, const TensorList& grad_outputs) {
    return self->on_grad_outputs(grad_outputs);
  };
  outputs_ = put_behind_identity(autograd, behind, hook);
  return behind;
}

// Silent when the gradient came past the module's outputs, as in a double backward.
TensorList BackwardHook::on_grad_inputs(const TensorList& grad_inputs) {
  if (!grad_outputs_) return {};
  TensorList grads = inputs_->pack(grad_inputs);
  for (const auto& hook : hooks_) {
    TensorList replacement = (*hook)(grads, *grad_outputs_);
    if (replacement.empty()) continue;
    check_count("Backward hook returned an invalid number of grad_input", replacement,
                grads.size());
    grads = std::move(replacement);
  }
  grad_outputs_.reset();
  return inputs_->unpack(grads);
}

TensorList BackwardHook::on_grad_outputs(const TensorList& grad_outputs) {
  grad_outputs_ = outputs_->pack(grad_outputs);
  for (const auto& hook : pre_hooks_) {
    TensorList replacement = (*hook)(*grad_outputs_);
    if (replacement.empty()) continue;
    check_count("Backward pre hook returned an invalid number of grad_output", replacement,
                grad_outputs_->size());
    grad_outputs_ = std::move(replacement);
  }
  const TensorList grads = *grad_outputs_;
  if (!inputs_) run_without_grad_inputs();
  return outputs_->unpack(grads);
}

void BackwardHook::run_without_grad_inputs() {
  const auto is_defined = [](const Tensor& grad) { return grad.is_defined(); };
  for (const auto& hook : hooks_) {
    const TensorList replacement = (*hook)(TensorList(input_count_), *grad_outputs_);
    if (std::any_of(replacement.begin(), replacement.end(), is_defined))
      throw AutogradError(
          "Backward hook for Modules where no input requires gradient should always return None "
          "or None for all gradients.");
  }
  grad_outputs_.reset();
}

}  // namespace zeroproof::nn
