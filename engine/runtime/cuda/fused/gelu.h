#pragma once

#include "engine/runtime/cuda/fused/device_types.h"

namespace zeroproof::cuda {

// y = gelu(x), the tanh form; any number of elements. `y` may be `x`.
cudaError_t gelu_tanh_forward(const Bf16* x, Bf16* y, std::int64_t elements, cudaStream_t stream);

// dx = dy * gelu'(x); `dx` may be `dy` or `x`.
struct GeluBackward {
  const Bf16* dy;
  const Bf16* x;
  Bf16* dx;
  std::int64_t elements;
};
cudaError_t gelu_tanh_backward(const GeluBackward& args, cudaStream_t stream);

}  // namespace zeroproof::cuda
