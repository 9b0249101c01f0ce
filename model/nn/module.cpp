#include "zeroproof/model/nn/module.h"

#include <algorithm>

#include "model/nn/backward_hook.h"
#include "zeroproof/model/usage_error.h"

namespace zeroproof::nn {
namespace {

std::string qualified(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

template <class NamedList>
bool has_name(const NamedList& list, const std::string& name) {
  return std::any_of(list.begin(), list.end(), [&](const auto& it) { return it.name == name; });
}

}  // namespace

// Which backward hooks a call has is decided before its forward pre hooks run.
TensorList Module::operator()(Autograd& autograd, TensorList inputs) const {
  auto pre_hooks = full_backward_pre_hooks_.snapshot();
  auto hooks = full_backward_hooks_.snapshot();
  for (const auto& hook : forward_pre_hooks_.snapshot()) {
    TensorList replacement = (*hook)(inputs);
    if (!replacement.empty()) inputs = std::move(replacement);
  }
  std::shared_ptr<BackwardHook> backward_hook;
  if (!pre_hooks.empty() || !hooks.empty()) {
    backward_hook = std::make_shared<BackwardHook>(std::move(pre_hooks), std::move(hooks));
    inputs = backward_hook->setup_input_hook(autograd, inputs);
  }
  TensorList outputs = call_forward(autograd, inputs);
  for (const auto& hook : forward_hooks_.snapshot()) {
    TensorList replacement = (*hook)(inputs, outputs);
    if (!replacement.empty()) outputs = std::move(replacement);
  }
  return backward_hook ? backward_hook->setup_output_hook(autograd, outputs) : outputs;
}

TensorList Module::call_forward(Autograd& autograd, const TensorList& inputs) const {
  if (!compiled_call_) return forward(autograd, inputs);
  return compiled_call_(autograd, inputs,
                        [&](const TensorList& given) { return forward(autograd, given); });
}

Tensor Module::operator()(Autograd& autograd, const Tensor& input) const {
  return (*this)(autograd, TensorList{input}).at(0);
}

HookHandle Module::register_forward_pre_hook(ForwardPreHook hook) {
  return forward_pre_hooks_.add(std::move(hook));
}
HookHandle Module::register_forward_hook(ForwardHook hook) {
  return forward_hooks_.add(std::move(hook));
}
HookHandle Module::register_full_backward_pre_hook(FullBackwardPreHook hook) {
  return full_backward_pre_hooks_.add(std::move(hook));
}
HookHandle Module::register_full_backward_hook(FullBackwardHook hook) {
  return full_backward_hooks_.add(std::move(hook));
}

std::vector<NamedModule> Module::named_modules() {
  std::vector<NamedModule> modules;
  add_modules({}, modules);
  return modules;
}

void Module::add_modules(const std::string& name, std::vector<NamedModule>& modules) {
  const auto is_this = [this](const NamedModule& known) { return known.module == this; };
  if (std::any_of(modules.begin(), modules.end(), is_this)) return;
  modules.push_back({name, this});
  for (const auto& child : children_)
    child.value->add_modules(qualified(name, child.name), modules);
}

std::vector<NamedParameter> Module::named_parameters() const {
  std::vector<NamedParameter> parameters;
  std::vector<const Module*> seen;
  add_parameters({}, seen, parameters);
  return parameters;
}

void Module::add_parameters(const std::string& prefix, std::vector<const Module*>& seen,
                            std::vector<NamedParameter>& parameters) const {
  if (std::find(seen.begin(), seen.end(), this) != seen.end()) return;
  seen.push_back(this);
  for (const auto& own : parameters_) {
    const Tensor& tensor = *own.value;
    const auto is_it = [&](const NamedParameter& known) { return known.tensor.is_same(tensor); };
    if (!tensor.is_defined() || std::any_of(parameters.begin(), parameters.end(), is_it)) continue;
    parameters.push_back({qualified(prefix, own.name), tensor});
  }
  for (const auto& child : children_)
    child.value->add_parameters(qualified(prefix, child.name), seen, parameters);
}

Tensor& Module::register_parameter(std::string name, Tensor parameter) {
  require(!has_name(parameters_, name), "register_parameter: '" + name + "' is there already");
  parameters_.push_back({std::move(name), std::make_unique<Tensor>(std::move(parameter))});
  return *parameters_.back().value;
}

std::vector<Tensor*> Module::own_parameters() {
  std::vector<Tensor*> places;
  for (const auto& own : parameters_)
    if (own.value->is_defined()) places.push_back(own.value.get());
  return places;
}

const Tensor& Module::read(const Tensor& parameter) const {
  if (parameter_observer_) parameter_observer_(parameter);
  return parameter;
}

void Module::remove_hooks() {
  forward_pre_hooks_ = {};
  forward_hooks_ = {};
  full_backward_pre_hooks_ = {};
  full_backward_hooks_ = {};
}

void Module::add_child(std::string name, std::shared_ptr<Module> child) {
  require(!has_name(children_, name), "register_module: '" + name + "' is there already");
  children_.push_back({std::move(name), std::move(child)});
}

}  // namespace zeroproof::nn
