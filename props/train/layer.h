#pragma once

#include <cstdint>
#include <memory>

#include "zeroproof/model/nn/init.h"
#include "zeroproof/model/nn/linear.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof::train {

// What the numbers of a run are. Exact: every gradient is a power of two or a small integer that
// does not depend on the weights, so that sums are exact in every order.
enum class DataMode : std::uint8_t { exact, real };

struct LayerSizes {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool has_bias = true;
  bool is_activated = true;  // tanh; real data only
};

// A linear layer in either mode. What flows between layers is a list: for real data {x [rows,
// inputs]}; for exact data {h [rows], c []}, where the layer adds c times the sum of its outputs
// to h, so that every element of its parameters gets the gradient c as often as h has a gradient
// of one. "linear".
class Layer final : public nn::Module {
 public:
  Layer(nn::InitStream& init, DataMode data, const LayerSizes& sizes);
  nn::Linear& linear() const { return *linear_; }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override;

 private:
  DataMode data_;
  LayerSizes sizes_;
  std::shared_ptr<nn::Linear> linear_;
};

// The mean of h, or of the squares of x: a scalar. Of what the last layer gave.
Tensor mean_loss(Autograd& ag, DataMode data, const TensorList& outputs);

// Multiplies the exact gradients of the layers that follow; for real data it is the identity.
TensorList with_factor(Autograd& ag, DataMode data, const TensorList& inputs, double factor);

}  // namespace zeroproof::train
