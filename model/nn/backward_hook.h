#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "zeroproof/internal/model/node.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof::nn {

// The backward hooks of one call of a module: what ties its two identity nodes together (rule
// H5). For module.cpp only.
class BackwardHook : public std::enable_shared_from_this<BackwardHook> {
 public:
  using PreHooks = HookList<Module::FullBackwardPreHook>::Snapshot;
  using Hooks = HookList<Module::FullBackwardHook>::Snapshot;

  BackwardHook(PreHooks pre_hooks, Hooks hooks)
      : pre_hooks_(std::move(pre_hooks)), hooks_(std::move(hooks)) {}

  // The same tensors after an identity node whose posthook runs the full backward hooks.
  TensorList setup_input_hook(Autograd& autograd, const TensorList& inputs);
  // The same after one whose posthook runs the full backward pre hooks; and, when the inputs got
  // no node, the full backward hooks as well.
  TensorList setup_output_hook(Autograd& autograd, const TensorList& outputs);

 private:
  // Which arguments of a call are tensors, and how many there are.
  struct Arguments {
    std::vector<std::size_t> tensors;
    std::size_t count = 0;
    TensorList pack(const TensorList& of_tensors) const;
    TensorList unpack(const TensorList& of_all) const;
  };

  static std::optional<Arguments> put_behind_identity(Autograd& autograd, TensorList& tensors,
                                                      const Node::PostHook& hook);
  TensorList on_grad_inputs(const TensorList& grad_inputs);
  TensorList on_grad_outputs(const TensorList& grad_outputs);
  void run_without_grad_inputs();

  PreHooks pre_hooks_;
  Hooks hooks_;
  std::size_t input_count_ = 0;
  std::optional<Arguments> inputs_;  // none: no identity node there
  std::optional<Arguments> outputs_;
  std::optional<TensorList> grad_outputs_;  // on their way from the one node to the other
};

}  // namespace zeroproof::nn
