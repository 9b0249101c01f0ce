#pragma once

#include <any>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/saved_tensor.h"
#include "zeroproof/internal/model/node.h"

namespace zeroproof {

struct BatchedInputs;  // model/op.h

// What forward keeps for backward: the ctx of a custom autograd.Function.
class FunctionContext {
 public:
  void save_for_backward(TensorList tensors) { to_save_ = std::move(tensors); }
  TensorList saved_tensors() const;

  // Outputs that need no gradient; forward returns these very tensors. Their gradients stay
  // undefined.
  void mark_non_differentiable(TensorList outputs) { non_differentiable_ = std::move(outputs); }

  // Undefined gradients of outputs reach backward as zeros unless this is off.
  void set_materialize_grads(bool is_on) { materializes_grads_ = is_on; }

  // In backward: see Autograd::input_grad_buffers(); one an input.
  TensorList input_grad_buffers() const;

  // In forward, once: the dtype that the gradient of each output arrives in; none for whatever it
  // comes in. Without the call it is the output's own.
  void set_output_grad_dtype(std::vector<std::optional<DType>> dtypes);

  // Attributes, as Python's ctx takes them. Reading one that was never set throws AutogradError,
  // PyTorch's AttributeError.
  void set(const std::string& name, std::any value) { attributes_[name] = std::move(value); }
  bool has(const std::string& name) const { return attributes_.contains(name); }
  template <class T>
  T get(const std::string& name) const {
    return std::any_cast<T>(attribute(name));
  }

 private:
  friend class CustomFunctionNode;
  friend class VmappedFunction;
  const std::any& attribute(const std::string& name) const;

  TensorList to_save_;
  TensorList non_differentiable_;
  std::vector<SavedTensor> saved_;
  std::optional<TensorList> given_;  // saved tensors, where somebody else kept them
  std::map<std::string, std::any> attributes_;
  std::optional<std::vector<std::optional<DType>>> output_grad_dtypes_;
  bool materializes_grads_ = true;
  std::string function_name_;
  std::weak_ptr<Node> node_;
};

// A custom autograd.Function. The legacy form has `forward`, which sees the context; the split
// form has `forward_alone` and `setup_context`, and only it passes through function transforms
// (rule T8): a node at every Grad level, forward at level 0. For vmap it has its own rule, or
// forward, setup_context and backward each run under a fresh vmap level. `backward` gives one
// gradient an input, undefined for none.
struct CustomFunction {
  std::string name;  // of its node: "NestedBackwardBackward"; "…GeneratedBackward" at a Grad level
  std::function<TensorList(FunctionContext&, const TensorList& inputs)> forward = {};
  std::function<TensorList(FunctionContext&, const TensorList& grads)> backward = {};
  std::function<TensorList(const TensorList& inputs)> forward_alone = {};
  std::function<void(FunctionContext&, const TensorList& inputs, const TensorList& outputs)>
      setup_context = {};
  bool generates_vmap_rule = false;
  // The whole Function on batched inputs, one level down; every output with the batch first.
  std::function<TensorList(const BatchedInputs& inputs)> vmap = {};

  bool is_split() const { return setup_context != nullptr; }
};

// Runs forward with grad mode off. The node is made, and takes its number, before that and
// whether or not an input needs a gradient (rule N2). AutogradError for a transform that the
// Function has no part for; forward-mode differentiation never has one.
TensorList apply_function(Autograd& autograd, const CustomFunction& function,
                          const TensorList& inputs);

}  // namespace zeroproof
