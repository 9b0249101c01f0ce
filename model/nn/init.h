#pragma once

#include <cstdint>

#include "model/tensor.h"

namespace zeroproof::nn {

// Where initial values come from: a splitmix64 stream, the same on every machine. Plain data.
class InitStream {
 public:
  explicit InitStream(std::uint64_t seed) : state_(seed) {}

  // In [-bound, bound).
  double uniform(double bound);
  // A leaf that requires a gradient.
  Tensor parameter(const Shape& sizes, double bound, DType dtype = DType::float64);
  // PyTorch's bound for weights and biases of linear layers: 1 / sqrt(inputs).
  Tensor kaiming(const Shape& sizes, std::int64_t inputs, DType dtype = DType::float64);

 private:
  std::uint64_t next();

  std::uint64_t state_;
};

// A leaf of one value that requires a gradient.
Tensor constant_parameter(const Shape& sizes, double value, DType dtype = DType::float64);

}  // namespace zeroproof::nn
