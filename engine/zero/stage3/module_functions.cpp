// The Functions at the inputs and outputs of modules.
#include <algorithm>

#include "engine/zero/stage3/module_hooks.h"
#include "model/op.h"
#include "zeroproof/internal/model/transforms/transform_frame.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof {
namespace {

constexpr const char* kLevel = "level";

std::int32_t current_level(const Autograd& ag) {
  const auto& frame = ag.local().transforms;
  return frame ? frame->level : 0;
}

// An example of a batch does not say itself what the batch needs.
bool needs_grad(const Tensor& x) {
  const TensorWrapper* wrapper = x.wrapper();
  return x.requires_grad() ||
         (wrapper && wrapper->kind == TransformKind::vmap && needs_grad(wrapper->inner));
}

// An alias of one tensor in the split form. Under vmap it is the same Function one level down:
// an alias of a batch is the batch of aliases.
CustomFunction alias_function(Autograd& ag, std::string name,
                              const std::function<void(const Tensor& input)>& on_forward,
                              const std::function<void(std::int32_t level)>& on_backward) {
  CustomFunction function;
  function.name = std::move(name);
  function.forward_alone = [](const TensorList& inputs) {
    return TensorList{inputs.at(0).detach()};
  };
  function.setup_context = [&ag, on_forward](FunctionContext& context, const TensorList& inputs,
                                             const TensorList&) {
    context.set_materialize_grads(false);
    context.set(kLevel, current_level(ag));
    on_forward(inputs.at(0));
  };
  function.backward = [on_backward](FunctionContext& context, const TensorList& grads) {
    on_backward(context.get<std::int32_t>(kLevel));
    return grads;
  };
  function.vmap = [&ag, unbatched = function](const BatchedInputs& inputs) {
    CustomFunction below = unbatched;
    below.generates_vmap_rule = true;
    return apply_function(ag, below, inputs.tensors);
  };
  return function;
}

}  // namespace
TensorList ModuleHooks::wrap_inputs(const InvocationPtr& invocation, const TensorList& inputs) {
  TensorList wrapped = inputs;
  for (Tensor& input : wrapped)
    if (input.is_defined())
      input = apply_function(context_.autograd, function_behind_input(invocation), {input}).at(0);
  return wrapped;
}

TensorList ModuleHooks::wrap_outputs(const InvocationPtr& invocation, const TensorList& outputs) {
  TensorList wrapped = outputs;
  for (Tensor& output : wrapped)
    if (output.is_defined())
      output =
          apply_function(context_.autograd, function_behind_output(invocation), {output}).at(0);
  return wrapped;
}

// Backward goes from the module's outputs to its inputs: the last input's gradient ends it.
CustomFunction ModuleHooks::function_behind_input(const InvocationPtr& invocation) {
  Autograd& ag = context_.autograd;
  return alias_function(
      ag, "PostBackwardFunctionModuleBackward",
      [&ag, invocation](const Tensor& input) {
        if (!needs_grad(input)) return;
        ++invocation->inputs[current_level(ag)];
      },
      [this, invocation](std::int32_t level) { after_input(*invocation, level); });
}

CustomFunction ModuleHooks::function_behind_output(const InvocationPtr& invocation) {
  return alias_function(
      context_.autograd, "PreBackwardFunctionForModuleBackward",
      [invocation](const Tensor&) { ++invocation->applied_outputs; },
      [this, invocation](std::int32_t) { before_backward(*invocation); });
}

void ModuleHooks::before_backward(Invocation& invocation) {
  if (counts_in_module() && invocation.applied_outputs <= 0) return;
  --invocation.applied_outputs;
  const Events::Call reported(context_.events, "z3.pre_backward");
  coordinator_.visit(*invocation.call.module);
  coordinator_.fetch(invocation.call, false);
}

void ModuleHooks::after_input(Invocation& invocation, std::int32_t level) {
  if (counts_in_module()) {
    if (--invocation.inputs[level] == 0) release_backward(invocation);
    return;
  }
  const GraphTaskId task = context_.autograd.current_graph_task();
  if (invocation.task != task) invocation.arrived = 0;
  invocation.task = task;
  const bool is_last = ++invocation.arrived >= invocation.inputs[level];
  if (!is_last) return;
  invocation.arrived = 0;
  release_backward(invocation);
}

void ModuleHooks::release_backward(Invocation& invocation) {
  const Events::Call reported(context_.events, "z3.post_backward");
  coordinator_.release(invocation.call, false);
}

}  // namespace zeroproof
