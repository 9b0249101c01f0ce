#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "model/node.h"
#include "model/saved_tensor.h"

namespace zeroproof {

// The node of a built-in operation: a formula, and what its forward kept for it.
class OpNode final : public Node {
 public:
  using Backward = TensorList (*)(Autograd&, OpNode&, const TensorList& grads);

  // One a kind of operation, static.
  struct Formula {
    std::string_view name;
    Backward backward;
  };

  OpNode(Autograd& autograd, std::uint64_t sequence_nr, const Formula& formula)
      : Node(autograd, sequence_nr), formula_(formula) {}

  std::string_view name() const override { return formula_.name; }
  TensorList apply(TensorList grads) override;
  void release_saved_tensors() override;

  void save(const Tensor& tensor) { saved_.emplace_back(tensor, false); }
  void save_output(const Tensor& tensor) { saved_.emplace_back(tensor, true); }
  Tensor saved(std::size_t i) { return saved_[i].unpack(shared_from_this()); }
  bool needs(std::size_t input) const { return next_edges()[input].is_valid(); }

  double scalar = 0.0;
  Shape sizes;                      // of the input, where the formula needs them
  std::vector<Shape> other_sizes;   // of the inputs, where there are many
  bool is_left_transposed = false;  // layout of the factors of a product
  bool is_right_transposed = false;

 private:
  const Formula& formula_;
  std::vector<SavedTensor> saved_;
};

// The node of an operation on these inputs, number taken and edges collected (rules N1, N2), or
// null when none of them needs a gradient.
std::shared_ptr<OpNode> make_op_node(Autograd& autograd, const OpNode::Formula& formula,
                                     std::initializer_list<const Tensor*> inputs);
std::shared_ptr<OpNode> make_op_node(Autograd& autograd, const OpNode::Formula& formula,
                                     const TensorList& inputs);

// Makes `result` the next output of the node, if there is one.
Tensor with_grad_fn(Tensor result, const std::shared_ptr<Node>& node);

}  // namespace zeroproof
