// The Functions behind the inputs and outputs of modules.
#include <algorithm>

#include "engine/zero/stage3/module_hooks.h"
#include "model/autograd.h"
#include "model/op.h"
#include "model/transforms/transform_frame.h"

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
                              std::function<void(const Tensor& input)> on_forward,
                              std::function<void(std::int32_t level)> on_backward) {
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

bool ModuleHooks::has_trained(const Zero3Module& module) {
  return std::ranges::any_of(module.own, [](const PartitionedParameter* parameter) {
    return parameter->parameter().requires_grad;
  });
}

TensorList ModuleHooks::wrap_inputs(const InvocationPtr& invocation, const TensorList& inputs) {
  TensorList wrapped = inputs;
  for (Tensor& input : wrapped)
    if (input.is_defined())
      input = apply_function(context_.autograd, function_behind_input(invocation), {input}).at(0);
  return wrapped;
}

TensorList ModuleHooks::wrap_outputs(const InvocationPtr& invocation, const TensorList& outputs) {
  TensorList wrapped = outputs;
  const Zero3Module& module = *invocation->call.module;
  if (context_.departs("F07"_bug) && !module.own.empty() && !has_trained(module)) return wrapped;
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
      [this, &ag, invocation](const Tensor& input) {
        if (!needs_grad(input)) return;
        ++invocation->inputs[current_level(ag)];
        count_input_in_module(*invocation);
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
  const bool is_guarded = context_.departs("A17"_bug) || context_.departs("F17"_bug);
  if (is_guarded && !guarded_.insert(invocation.call.module->id).second) return;
  coordinator_.visit(*invocation.call.module);
  coordinator_.fetch(invocation.call, false);
  if (context_.departs("A34"_bug) && invocation.inputs.empty()) release_backward(invocation);
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
  if (counts_by_module() && !releases_by_module(invocation, is_last)) return;
  if (!is_last) return;
  invocation.arrived = 0;
  release_backward(invocation);
}

// F18 of the catalogue: one count of inputs a module, set to nothing by each of its forwards, or by
// none. Where it is not at zero behind the last input, no release ever comes.
bool ModuleHooks::counts_by_module() const {
  return context_.departs("F18a"_bug) || context_.departs("F18b"_bug) ||
         context_.departs("F23"_bug);
}

// F23 of the catalogue: a wrapper without parameters finds what is kept for its first child.
std::int64_t& ModuleHooks::awaited(const Zero3Module& module) {
  auto id = static_cast<std::size_t>(module.id);
  const auto& all = modules_.all();
  while (context_.departs("F23"_bug) && all[id].own.empty() && id + 1 < all.size()) ++id;
  return awaited_[static_cast<std::int32_t>(id)];
}

void ModuleHooks::count_inputs_anew(const Zero3Module& module) {
  if (context_.departs("F18a"_bug)) awaited_[module.id] = 0;
}

void ModuleHooks::count_input_in_module(const Invocation& invocation) {
  if (counts_by_module()) ++awaited(*invocation.call.module);
}

bool ModuleHooks::releases_by_module(Invocation& invocation, bool is_last) {
  const bool is_zero = --awaited(*invocation.call.module) == 0;
  if (is_last && !is_zero) {
    invocation.arrived = 0;
    coordinator_.lose(invocation.call);
  }
  return is_zero;
}

void ModuleHooks::release_backward(Invocation& invocation) {
  if (context_.departs("A35"_bug) && !has_trained(*invocation.call.module)) return;
  const Events::Call reported(context_.events, "z3.post_backward");
  coordinator_.release(invocation.call, false);
  const bool is_repeated = context_.departs("F08"_bug) && invocation.call.invocation > 0 &&
                           !invocation.call.module->own.empty() &&
                           !has_trained(*invocation.call.module);
  if (is_repeated) coordinator_.release(invocation.call, false);  // a hook of each use
}

}  // namespace zeroproof
