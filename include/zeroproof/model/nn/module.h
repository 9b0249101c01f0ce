#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeroproof/model/hooks.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {
class Autograd;
}

namespace zeroproof::nn {

class Module;

struct NamedParameter {
  std::string name;  // fully qualified: "block.l1.weight"
  Tensor tensor;
};

struct NamedModule {
  std::string name;  // fully qualified; empty for the root
  Module* module;    // never null
};

// A layer with named parameters and children, as torch.nn.Module. Inputs and outputs are lists of
// tensors; an undefined one is an argument that is no tensor. May be moved until something refers
// to it. Not thread-safe.
class Module {
 public:
  // Hooks that return an empty list keep what they saw (rule H7). Gradients are undefined where
  // none came and for arguments that are no tensors.
  using ForwardPreHook = std::function<TensorList(const TensorList& inputs)>;
  using ForwardHook =
      std::function<TensorList(const TensorList& inputs, const TensorList& outputs)>;
  using FullBackwardPreHook = std::function<TensorList(const TensorList& grad_outputs)>;
  using FullBackwardHook =
      std::function<TensorList(const TensorList& grad_inputs, const TensorList& grad_outputs)>;

  virtual ~Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = delete;

  // forward() with all hooks around it. A module that has backward hooks puts an identity node
  // at its inputs and one at its outputs (rule H5), unless grad mode is off or not one of
  // them needs a gradient. A hook that replaces gradients by another number of them, or the input
  // gradients of a module whose inputs need none, fails the backward with an AutogradError.
  TensorList operator()(Autograd& autograd, TensorList inputs) const;
  Tensor operator()(Autograd& autograd, const Tensor& input) const;

  HookHandle register_forward_pre_hook(ForwardPreHook hook);
  HookHandle register_forward_hook(ForwardHook hook);
  HookHandle register_full_backward_pre_hook(FullBackwardPreHook hook);
  HookHandle register_full_backward_hook(FullBackwardHook hook);

  // The module itself and everything below it, each once under its first name: a module before
  // its children, in order of registration.
  std::vector<NamedModule> named_modules();
  // Own parameters before those of children; undefined ones left out.
  std::vector<NamedParameter> named_parameters() const;

  // Its own entries alone. Adding a name twice is a UsageError.
  Tensor& register_parameter(std::string name, Tensor parameter);
  template <class Child>
  std::shared_ptr<Child> register_module(std::string name,  // NOLINT: moved on
                                         std::shared_ptr<Child> child) {
    add_child(std::move(name), child);
    return child;
  }

  // The places of its own parameters that are defined, in order of registration; they stay where
  // they are when the module moves. What forward() uses is what is there.
  std::vector<Tensor*> own_parameters();
  // What outputs are to a caller of Python's module. A list here, whatever it is.
  enum class OutputContainer { tensors, dict, dataclass };
  virtual OutputContainer output_container() const { return OutputContainer::tensors; }

  // Takes all hooks away; those of calls that were made before stay in their graphs.
  void remove_hooks();

  // A parameter of this module, as somebody else's forward reads it: what Python's attribute access
  // does. An observer may fill the tensor before its user sees it.
  const Tensor& read(const Tensor& parameter) const;
  using ParameterObserver = std::function<void(const Tensor& parameter)>;
  void set_parameter_observer(ParameterObserver observer) {
    parameter_observer_ = std::move(observer);
  }

  // Runs in place of forward(), which it gets, inside the hooks; empty: forward() itself.
  using Forward = std::function<TensorList(const TensorList& inputs)>;
  using CompiledCall = std::function<TensorList(Autograd& autograd, const TensorList& inputs,
                                                const Forward& forward)>;
  void set_compiled_call(CompiledCall call) { compiled_call_ = std::move(call); }

 protected:
  Module() = default;

  virtual TensorList forward(Autograd& autograd, const TensorList& inputs) const = 0;

 private:
  template <class T>
  struct Named {
    std::string name;
    T value;
  };

  TensorList call_forward(Autograd& autograd, const TensorList& inputs) const;
  void add_child(std::string name, std::shared_ptr<Module> child);
  void add_modules(const std::string& name, std::vector<NamedModule>& modules);
  void add_parameters(const std::string& prefix, std::vector<const Module*>& seen,
                      std::vector<NamedParameter>& parameters) const;

  std::vector<Named<std::unique_ptr<Tensor>>> parameters_;  // their addresses are handed out
  std::vector<Named<std::shared_ptr<Module>>> children_;
  HookList<ForwardPreHook> forward_pre_hooks_;
  HookList<ForwardHook> forward_hooks_;
  HookList<FullBackwardPreHook> full_backward_pre_hooks_;
  HookList<FullBackwardHook> full_backward_hooks_;
  CompiledCall compiled_call_;
  ParameterObserver parameter_observer_;
};

}  // namespace zeroproof::nn
