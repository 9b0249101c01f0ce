#include "model/nn/init.h"

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace zeroproof::nn {

// Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
std::uint64_t InitStream::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

double InitStream::uniform(double bound) {
  const double unit = static_cast<double>(next() >> 11U) * 0x1p-53;
  return bound * (2.0 * unit - 1.0);
}

Tensor InitStream::parameter(const Shape& sizes, double bound, DType dtype) {
  std::vector<double> values(static_cast<std::size_t>(numel(sizes)));
  for (double& value : values) value = uniform(bound);
  const Tensor parameter = Tensor::of(values, sizes, dtype);
  parameter.set_requires_grad(true);
  return parameter;
}

Tensor InitStream::kaiming(const Shape& sizes, std::int64_t inputs, DType dtype) {
  return parameter(sizes, 1.0 / std::sqrt(static_cast<double>(inputs)), dtype);
}

Tensor constant_parameter(const Shape& sizes, double value, DType dtype) {
  const Tensor parameter = Tensor::full(sizes, value, dtype);
  parameter.set_requires_grad(true);
  return parameter;
}

// Box and Muller: two numbers of each two.
Tensor normal_parameter(const Philox& generator, const Shape& sizes, double deviation,
                        DType dtype) {
  std::vector<double> values(static_cast<std::size_t>(numel(sizes)));
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const std::array<double, 4> uniforms = generator.uniforms_of(i / 4);
    const double radius = deviation * std::sqrt(-2.0 * std::log(uniforms[i % 4]));
    const double angle = 2.0 * std::numbers::pi * uniforms[i % 4 + 1];
    values[i] = radius * std::cos(angle);
    if (i + 1 < values.size()) values[i + 1] = radius * std::sin(angle);
  }
  const Tensor parameter = Tensor::of(values, sizes, dtype);
  parameter.set_requires_grad(true);
  return parameter;
}

}  // namespace zeroproof::nn
