#include "zeroproof/model/nn/mlp.h"

#include "model/functions/activations.h"

namespace zeroproof::nn {

Tensor activate(Autograd& ag, Activation activation, const Tensor& x) {
  switch (activation) {
    case Activation::relu:
      return relu(ag, x);
    case Activation::gelu:
      return gelu(ag, x);
    case Activation::gelu_tanh:
      return gelu(ag, x, GeluForm::tanh);
    case Activation::silu:
      return silu(ag, x);
    case Activation::tanh:
      return tanh(ag, x);
    case Activation::sigmoid:
      return sigmoid(ag, x);
    case Activation::sin:
      return sin(ag, x);
    case Activation::cos:
      break;
  }
  return cos(ag, x);
}

std::shared_ptr<Linear> make_linear(InitStream& init, const LinearSizes& sizes) {
  const Tensor weight = init.kaiming({sizes.outputs, sizes.inputs}, sizes.inputs, sizes.dtype);
  if (!sizes.has_bias) return std::make_shared<Linear>(weight);
  return std::make_shared<Linear>(weight, init.kaiming({sizes.outputs}, sizes.inputs, sizes.dtype));
}

Mlp::Mlp(InitStream& init, const MlpSizes& sizes)
    : activation_(sizes.activation),
      up_(register_module(
          "up", make_linear(
                    init, {.inputs = sizes.width, .outputs = sizes.hidden, .dtype = sizes.dtype}))),
      down_(register_module("down", make_linear(init, {.inputs = sizes.hidden,
                                                       .outputs = sizes.width,
                                                       .dtype = sizes.dtype}))) {}

TensorList Mlp::forward(Autograd& ag, const TensorList& inputs) const {
  return {(*down_)(ag, activate(ag, activation_, (*up_)(ag, inputs.at(0))))};
}

}  // namespace zeroproof::nn
