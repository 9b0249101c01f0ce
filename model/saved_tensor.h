#pragma once

#include <cstdint>
#include <memory>

#include "model/tensor.h"

namespace zeroproof {

// A tensor that a node keeps for its backward (rules S1, S2, D1). An output of the node itself is
// kept without its grad_fn, so that the node does not own itself.
class SavedTensor {
 public:
  SavedTensor() = default;
  SavedTensor(const Tensor& tensor, bool is_output);

  // `owner` is the node that saved it. Throws AutogradError when it was released or modified in
  // place since.
  Tensor unpack(const std::shared_ptr<Node>& owner) const;

  void release();

 private:
  Tensor tensor_;
  std::uint32_t version_ = 0;
  std::uint32_t output_nr_ = 0;
  bool is_output_ = false;
  bool is_released_ = false;
};

}  // namespace zeroproof
