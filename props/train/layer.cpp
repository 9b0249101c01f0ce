#include "props/train/layer.h"

#include "zeroproof/model/functions.h"

namespace zeroproof::train {

Layer::Layer(nn::InitStream& init, DataMode data, const LayerSizes& sizes)
    : data_(data), sizes_(sizes) {
  const Tensor weight = init.kaiming({sizes.outputs, sizes.inputs}, sizes.inputs, DType::float32);
  const Tensor bias =
      sizes.has_bias ? init.kaiming({sizes.outputs}, sizes.inputs, DType::float32) : Tensor();
  linear_ = register_module("linear", std::make_shared<nn::Linear>(weight, bias));
}

TensorList Layer::forward(Autograd& ag, const TensorList& inputs) const {
  if (data_ == DataMode::real) {
    const Tensor y = (*linear_)(ag, inputs.at(0));
    return {sizes_.is_activated ? tanh(ag, y) : y};
  }
  const Tensor& h = inputs.at(0);
  const Tensor& c = inputs.at(1);
  const Tensor ones = Tensor::full({1, sizes_.inputs}, 1.0, c.dtype()).on(c.device());
  return {add(ag, h, mul(ag, c, sum(ag, (*linear_)(ag, ones)))), c};
}

Tensor mean_loss(Autograd& ag, DataMode data, const TensorList& outputs) {
  if (data == DataMode::exact) return mean(ag, outputs.at(0));
  return mean(ag, mul(ag, outputs.at(0), outputs.at(0)));
}

TensorList with_factor(Autograd& ag, DataMode data, const TensorList& inputs, double factor) {
  if (data == DataMode::real) return inputs;
  return {inputs.at(0), mul(ag, inputs.at(1), factor)};
}

}  // namespace zeroproof::train
