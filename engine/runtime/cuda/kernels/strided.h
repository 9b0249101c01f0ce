#pragma once

#include <array>
#include <cstdint>

#include "zeroproof/model/dtype.h"

namespace zeroproof::cuda {

inline constexpr int kDimsMax = 8;

// A tensor as kernels see it, passed by value. A dense one has one dimension of stride 1.
struct Strided {
  void* data = nullptr;  // its first element; null: every element is `constant`
  double constant = 0.0;
  DType dtype = DType::float64;
  int dims = 1;
  std::int64_t elements = 0;
  std::array<std::int64_t, kDimsMax> sizes{};
  std::array<std::int64_t, kDimsMax> strides{};
};

}  // namespace zeroproof::cuda
