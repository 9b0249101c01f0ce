#pragma once

#include "zeroproof/model/nn/module.h"

namespace zeroproof::nn {

// weight [rows, width]. Its input holds row numbers, as whole numbers of any dtype.
class Embedding final : public Module {
 public:
  explicit Embedding(Tensor weight_in)
      : weight(register_parameter("weight", std::move(weight_in))) {}

  Tensor& weight;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override;
};

}  // namespace zeroproof::nn
