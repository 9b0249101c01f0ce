#pragma once

#include <cstdint>
#include <memory>

#include "zeroproof/internal/model/local_state.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;

// A tensor that a node keeps for its backward (rules S1 to S4, D1). An output of the node itself
// is kept without its grad_fn, so that the node does not own itself.
class SavedTensor {
 public:
  SavedTensor() = default;
  // Packs with the innermost saved-tensor hooks of the current thread, if it has any.
  SavedTensor(Autograd& autograd, const Tensor& tensor, bool is_output);

  // `owner` is the node that saved it. Throws AutogradError when it was released, or modified in
  // place since and not packed by hooks; and whatever an unpack hook throws.
  Tensor unpack(const std::shared_ptr<Node>& owner) const;

  void release();

 private:
  // What hooks put in the tensor's place, and what makes their answer a tensor of the graph.
  struct Packed {
    SavedTensorHooks hooks;
    std::shared_ptr<void> content;
    std::shared_ptr<Node> grad_fn;  // of an input; of a leaf its AccumulateGrad (rule S3)
    bool is_leaf = true;
    bool requires_grad = false;
  };

  Tensor unpack_hooked(const std::shared_ptr<Node>& owner) const;

  Tensor tensor_;
  std::shared_ptr<Packed> packed_;
  std::uint32_t version_ = 0;
  std::uint32_t output_nr_ = 0;
  bool is_output_ = false;
  bool is_released_ = false;
};

// Hooks for a while, innermost on the current thread.
class SavedTensorHooksScope {
 public:
  SavedTensorHooksScope(Autograd& autograd, SavedTensorHooks hooks);
  ~SavedTensorHooksScope();
  SavedTensorHooksScope(const SavedTensorHooksScope&) = delete;
  SavedTensorHooksScope& operator=(const SavedTensorHooksScope&) = delete;

 private:
  Autograd& autograd_;
  std::shared_ptr<const SavedTensorHookFrame> before_;
};

}  // namespace zeroproof
