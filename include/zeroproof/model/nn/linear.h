#pragma once

#include <utility>

#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof::nn {

// weight [out, in]; without a bias when it is undefined.
class Linear final : public Module {
 public:
  Linear() : Linear(Tensor(), Tensor()) {}
  explicit Linear(Tensor weight_in, Tensor bias_in = {})
      : weight(register_parameter("weight", std::move(weight_in))),
        bias(register_parameter("bias", std::move(bias_in))) {}

  Tensor& weight;
  Tensor& bias;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {linear(ag, inputs.at(0), weight, bias)};
  }
};

}  // namespace zeroproof::nn
