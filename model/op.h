#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/autocast/cast_policy.h"
#include "model/saved_tensor.h"
#include "zeroproof/internal/model/node.h"
#include "zeroproof/internal/model/ops.h"

namespace zeroproof {

class OpNode;

// What an operation takes besides tensors. Each operation says what it uses.
struct OpArgs {
  double scalar = 0.0;
  std::int64_t dim = 0;
  std::int64_t other_dim = 0;
  std::int64_t index = 0;
  Shape sizes = {};
  std::vector<Shape> shapes = {};
  std::vector<std::int64_t> indices = {};
  DType dtype = DType::float64;
  bool flag = false;
  std::optional<DType> result = {};  // instead of the inputs' own dtype
};

// Inputs of a batching rule: batched ones have the batch as their first dimension.
struct BatchedInputs {
  const TensorList& tensors;
  const std::vector<bool>& is_batched;
  std::int64_t batch_size;
};

// One kind of operation: how its numbers are computed and how every layer above them treats it.
// Static; missing parts mean that the layer does not know the operation.
struct Op {
  std::string_view name;  // of its node, as PyTorch names it: "MulBackward0"

  // Numbers from numbers: what no layer looks into. Null where forward_one says it.
  TensorList (*forward)(const Ops& ops, const TensorList& inputs, const OpArgs& args) = nullptr;

  // The same of an operation with one output, which needs no lists where no layer looks on.
  Tensor (*forward_one)(const Ops& ops, std::span<const Tensor> inputs,
                        const OpArgs& args) = nullptr;

  // Called on a new node before the numbers are computed; after that, outputs are saved.
  void (*save)(OpNode& node, const TensorList& inputs) = nullptr;
  bool saves_output = false;

  // From gradients of the outputs to gradients of the inputs, in differentiable functions, so
  // that create_graph differentiates it again. Null: the operation makes no node.
  TensorList (*backward)(Autograd& ag, OpNode& node, const TensorList& grads) = nullptr;

  // The operation on batched inputs, one layer down; every output batched (rule T2).
  TensorList (*batch)(Autograd& ag, const BatchedInputs& inputs, const OpArgs& args) = nullptr;

  // Tangents of the outputs from primals, tangents (some undefined) and outputs, one layer down.
  TensorList (*jvp)(Autograd& ag, const TensorList& primals, const TensorList& tangents,
                    const TensorList& outputs, const OpArgs& args) = nullptr;

  CastPolicies cast = {};
};

inline const OpArgs kNoArgs;

// Runs an operation through all layers: autocast, the function transforms from the innermost
// level down, and at each level that differentiates a node (rules N2, T2).
TensorList apply(Autograd& ag, const Op& op, TensorList inputs, const OpArgs& args = kNoArgs);
Tensor apply_one(Autograd& ag, const Op& op, TensorList inputs, const OpArgs& args = kNoArgs);
Tensor apply_one(Autograd& ag, const Op& op, std::initializer_list<Tensor> inputs,
                 const OpArgs& args = kNoArgs);

// The node of a built-in operation, and what its forward kept for it.
class OpNode final : public Node {
 public:
  OpNode(Autograd& autograd, std::uint64_t sequence_nr, const Op& op, const OpArgs& arguments)
      : Node(autograd, sequence_nr), args(arguments), op_(op) {}

  std::string_view name() const override { return op_.name; }
  TensorList apply(TensorList grads) override;
  void release_saved_tensors() override;

  void save(const Tensor& tensor) { saved_.emplace_back(autograd(), tensor, false); }
  void save_output(const Tensor& tensor) { saved_.emplace_back(autograd(), tensor, true); }
  Tensor saved(std::size_t i) { return saved_[i].unpack(shared_from_this()); }
  bool needs(std::size_t input) const { return next_edges()[input].is_valid(); }

  OpArgs args;

 private:
  const Op& op_;
  std::vector<SavedTensor> saved_;
};

// Makes `result` the next output of the node, if there is one.
Tensor with_grad_fn(Tensor result, const std::shared_ptr<Node>& node);

}  // namespace zeroproof
