#pragma once

#include <memory>

#include "zeroproof/model/nn/init.h"
#include "zeroproof/model/nn/linear.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof::nn {

enum class Activation : std::uint8_t { relu, gelu, gelu_tanh, silu, tanh, sigmoid, sin, cos };

Tensor activate(Autograd& ag, Activation activation, const Tensor& x);

struct LinearSizes {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool has_bias = true;
  DType dtype = DType::float64;
};

std::shared_ptr<Linear> make_linear(InitStream& init, const LinearSizes& sizes);

struct MlpSizes {
  std::int64_t width = 0;
  std::int64_t hidden = 0;
  Activation activation = Activation::gelu;
  DType dtype = DType::float64;
};

// "up", the activation, "down".
class Mlp final : public Module {
 public:
  Mlp(InitStream& init, const MlpSizes& sizes);

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override;

 private:
  Activation activation_;
  std::shared_ptr<Linear> up_;
  std::shared_ptr<Linear> down_;
};

}  // namespace zeroproof::nn
