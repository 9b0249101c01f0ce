#include "zeroproof/model/nn/init.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <thread>
#include <vector>

#include "model/splitmix64.h"

namespace zeroproof::nn {

std::uint64_t InitStream::next() {
  return next_splitmix64(state_);
}

double InitStream::uniform(double bound) {
  const double unit = static_cast<double>(next() >> 11U) * 0x1p-53;
  return bound * (2.0 * unit - 1.0);
}

Tensor InitStream::parameter(const Shape& sizes, double bound, DType dtype) {
  std::vector<double> values(static_cast<std::size_t>(numel(sizes)));
  for (double& value : values) value = uniform(bound);
  Tensor parameter = Tensor::of(values, sizes, dtype);
  parameter.set_requires_grad(true);
  return parameter;
}

Tensor InitStream::kaiming(const Shape& sizes, std::int64_t inputs, DType dtype) {
  return parameter(sizes, 1.0 / std::sqrt(static_cast<double>(inputs)), dtype);
}

Tensor constant_parameter(const Shape& sizes, double value, DType dtype) {
  Tensor parameter = Tensor::full(sizes, value, dtype);
  parameter.set_requires_grad(true);
  return parameter;
}

namespace {

constexpr std::size_t kDrawn = 4;  // numbers of one thread of the generator

// Box and Muller: two numbers of each two. From `begin`, a multiple of four, to `end`.
void fill_normals(const Philox& generator, double deviation, std::size_t begin, std::size_t end,
                  std::vector<double>& values) {
  for (std::size_t i = begin; i < end; i += kDrawn) {
    const std::array<double, kDrawn> uniforms = generator.uniforms_of(i / kDrawn);
    for (std::size_t j = 0; j < kDrawn && i + j < end; j += 2) {
      const double radius = deviation * std::sqrt(-2.0 * std::log(uniforms[j]));
      const double angle = 2.0 * std::numbers::pi * uniforms[j + 1];
      values[i + j] = radius * std::cos(angle);
      if (i + j + 1 < end) values[i + j + 1] = radius * std::sin(angle);
    }
  }
}

}  // namespace

// Every value depends on its place alone, not on the thread that makes it.
Tensor normal_parameter(const Philox& generator, const Shape& sizes, double deviation,
                        DType dtype) {
  constexpr std::size_t kShareMin = std::size_t{1} << 20;  // fewer are not worth a thread
  constexpr std::size_t kThreadsMax = 16;
  std::vector<double> values(static_cast<std::size_t>(numel(sizes)));
  const std::size_t threads =
      std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1,
                              std::clamp<std::size_t>(values.size() / kShareMin, 1, kThreadsMax));
  const std::size_t share = (values.size() / threads + kDrawn) / kDrawn * kDrawn;
  std::vector<std::thread> others;
  for (std::size_t begin = share; begin < values.size(); begin += share)
    others.emplace_back([&, begin] {
      fill_normals(generator, deviation, begin, std::min(begin + share, values.size()), values);
    });
  fill_normals(generator, deviation, 0, std::min(share, values.size()), values);
  for (std::thread& other : others) other.join();
  Tensor parameter = Tensor::of(values, sizes, dtype);
  parameter.set_requires_grad(true);
  return parameter;
}

}  // namespace zeroproof::nn
