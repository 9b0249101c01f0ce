#pragma once

#include <cstdint>

#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

// Elements [begin, begin + elements) of a tensor in row-major order. Does not own it: code that
// launches work on a span keeps the tensor until the work is done, or calls Stream::record_use.
// A part of a tensor needs a contiguous one; a whole one may have any strides.
struct Span {
  TensorImpl* tensor = nullptr;
  std::int64_t begin = 0;
  std::int64_t elements = 0;

  static Span of(const Tensor& tensor) { return {&tensor.impl(), 0, tensor.numel()}; }
  static Span of(const Tensor& tensor, std::int64_t begin, std::int64_t elements) {
    return {&tensor.impl(), begin, elements};
  }

  Span part(std::int64_t from, std::int64_t count) const { return {tensor, begin + from, count}; }
  bool is_empty() const { return elements == 0; }
  DType dtype() const { return tensor->dtype; }
  std::int64_t bytes() const { return elements * item_bytes(dtype()); }
};

}  // namespace zeroproof
