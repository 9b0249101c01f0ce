#pragma once

#include "model/functions/fused.h"
#include "zeroproof/model/nn/module.h"

// Layers on the fused operations: differentiable once (model/functions/fused.h).
namespace zeroproof::nn {

// weight [rows, width]; its input holds row numbers as float32 and stays on its device.
class FusedEmbedding final : public Module {
 public:
  explicit FusedEmbedding(Tensor weight_in)
      : weight(register_parameter("weight", std::move(weight_in))) {}

  Tensor& weight;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {fused::embedding(ag, weight, inputs.at(0))};
  }
};

// From {x, residual or undefined} to {their sum, the sum normalized}.
class AddRmsNorm final : public Module {
 public:
  AddRmsNorm(Tensor weight_in, double eps)
      : weight(register_parameter("weight", std::move(weight_in))), eps_(eps) {}

  Tensor& weight;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    fused::Normed out = fused::add_rms_norm(ag, inputs.at(0), inputs.at(1), weight, eps_);
    return {std::move(out.sum), std::move(out.y)};
  }

 private:
  double eps_;
};

}  // namespace zeroproof::nn
