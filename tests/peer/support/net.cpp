#include "tests/peer/support/net.h"

#include "model/functions/losses.h"
#include "model/nn/norm.h"

namespace zeroproof::peer {

Net::Net(const Parts& parts, Body body) : body_(std::move(body)) {
  for (const auto& [name, tensor] : parts.parameters)
    parameters_[name] = &register_parameter(name, tensor);
  for (const auto& [name, child] : parts.children) children_[name] = register_module(name, child);
}

Tensor Net::call(Autograd& ag, const std::string& child, const Tensor& input) const {
  return (*children_.at(child))(ag, input);
}

TensorList Net::call_list(Autograd& ag, const std::string& child, const TensorList& inputs) const {
  return (*children_.at(child))(ag, inputs);
}

Tensor sample(const Shape& sizes, std::uint64_t seed, DType dtype) {
  nn::InitStream stream(seed + 1);
  std::vector<double> values(static_cast<std::size_t>(numel(sizes)));
  for (double& value : values) value = stream.uniform(1.0);
  return Tensor::of(values, sizes, dtype);
}

std::shared_ptr<nn::Linear> linear_layer(std::int64_t inputs, std::int64_t outputs,
                                         std::uint64_t seed, bool has_bias) {
  nn::InitStream stream(seed);
  const Tensor weight = stream.kaiming({outputs, inputs}, inputs, DType::float32);
  const Tensor bias = has_bias ? stream.kaiming({outputs}, inputs, DType::float32) : Tensor();
  return std::make_shared<nn::Linear>(weight, bias);
}

ModulePtr norm_layer(std::int64_t width, std::uint64_t seed) {
  nn::InitStream stream(seed);
  return std::make_shared<nn::LayerNorm>(stream.parameter({width}, 1.0, DType::float32),
                                         stream.parameter({width}, 0.5, DType::float32));
}

void freeze(nn::Module& module) {
  for (const nn::NamedParameter& parameter : module.named_parameters())
    parameter.tensor.set_requires_grad(false);
}

NetMaker make_stack(const StackSizes& sizes, std::uint64_t seed) {
  return [sizes, seed]() -> ModulePtr {
    Net::Parts parts;
    for (int i = 0; i < sizes.layers; ++i)
      parts.children.emplace_back(
          "l" + std::to_string(i),
          linear_layer(sizes.width, sizes.width, seed + static_cast<std::uint64_t>(i)));
    return std::make_shared<Net>(
        parts, [sizes](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          Tensor x = in.at(0);
          for (int i = 0; i < sizes.layers; ++i) {
            x = net.call(ag, "l" + std::to_string(i), x);
            if (i + 1 < sizes.layers) x = tanh(ag, x);
          }
          return {sizes.has_loss ? mse_loss(ag, x, in.at(1)) : x};
        });
  };
}

}  // namespace zeroproof::peer
