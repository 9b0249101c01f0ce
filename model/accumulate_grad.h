#pragma once

#include <memory>

#include "zeroproof/internal/model/node.h"

namespace zeroproof {

// The sink of a leaf (rules A1 to A6): adds what arrives to the leaf's gradient and then runs its
// post-accumulate hooks. Graphs own it and it owns the leaf; the leaf only knows it.
class AccumulateGrad final : public Node {
 public:
  AccumulateGrad(Autograd& autograd, const Tensor& leaf);

  std::string_view name() const override { return "torch::autograd::AccumulateGrad"; }
  TensorList apply(TensorList grads) override;
  void run_tensor_hooks(TensorList& grads) const override;

  const Tensor& leaf() const { return leaf_; }

 private:
  void accumulate(const Tensor& grad);
  bool can_steal(const Tensor& grad) const;
  bool has_layout_of_leaf(const Tensor& grad) const;
  Tensor copy(const Tensor& grad) const;

  Tensor leaf_;
};

// Where gradients of `tensor` go: its grad_fn, or its AccumulateGrad, which is made when the leaf
// has none alive. Invalid when the tensor needs no gradient.
Edge gradient_edge(Autograd& autograd, const Tensor& tensor);

// The leaf's AccumulateGrad if a graph keeps one alive.
std::shared_ptr<Node> find_accumulate_grad(const Tensor& leaf);

}  // namespace zeroproof
