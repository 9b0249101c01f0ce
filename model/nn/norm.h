#pragma once

#include "model/functions/normalization.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof::nn {

// Over the last dimensions, those of the weight; the bias may be undefined.
class LayerNorm final : public Module {
 public:
  explicit LayerNorm(Tensor weight_in, Tensor bias_in = {}, double eps = 1e-5)
      : weight(register_parameter("weight", std::move(weight_in))),
        bias(register_parameter("bias", std::move(bias_in))),
        eps_(eps) {}

  Tensor& weight;
  Tensor& bias;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {layer_norm(ag, inputs.at(0), weight, bias, {weight.sizes(), eps_})};
  }

 private:
  double eps_;
};

// As LayerNorm, without mean and bias.
class RmsNorm final : public Module {
 public:
  explicit RmsNorm(Tensor weight_in, double eps = 1e-5)
      : weight(register_parameter("weight", std::move(weight_in))), eps_(eps) {}

  Tensor& weight;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {rms_norm(ag, inputs.at(0), weight, {weight.sizes(), eps_})};
  }

 private:
  double eps_;
};

}  // namespace zeroproof::nn
