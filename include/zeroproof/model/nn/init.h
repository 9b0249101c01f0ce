#pragma once

#include <cstdint>

#include "zeroproof/internal/model/philox.h"
#include "zeroproof/model/tensor.h"

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

// A leaf of normal numbers of mean 0 that requires a gradient. Values 4t to 4t+3 are made of the
// four numbers of thread t, so that each can be had without the others.
Tensor normal_parameter(const Philox& generator, const Shape& sizes, double deviation,
                        DType dtype = DType::float64);

}  // namespace zeroproof::nn
