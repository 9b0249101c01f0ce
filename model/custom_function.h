#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/node.h"
#include "model/saved_tensor.h"

namespace zeroproof {

// What forward keeps for backward: the ctx of a custom autograd.Function.
class FunctionContext {
 public:
  void save_for_backward(TensorList tensors) { to_save_ = std::move(tensors); }
  TensorList saved_tensors() const;

 private:
  friend class CustomFunctionNode;
  TensorList to_save_;
  std::vector<SavedTensor> saved_;
  std::weak_ptr<Node> node_;
};

// A legacy-form autograd.Function: one tensor out. `backward` gives one gradient an input,
// undefined for none.
struct CustomFunction {
  std::string name;  // of its node: "NestedBackwardBackward"
  std::function<Tensor(FunctionContext&, const TensorList& inputs)> forward;
  std::function<TensorList(FunctionContext&, const Tensor& grad)> backward;
};

// Runs forward with grad mode off. The node is made, and takes its number, before that and
// whether or not an input needs a gradient (rule N2).
Tensor apply_function(Autograd& autograd, const CustomFunction& function, const TensorList& inputs);

}  // namespace zeroproof
