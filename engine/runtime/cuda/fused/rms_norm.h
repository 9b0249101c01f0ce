#pragma once

#include "engine/runtime/cuda/fused/device_types.h"

namespace zeroproof::cuda {

// Rows of `width` values, a multiple of 8 up to 8192.
//   sum = x + residual (rounded to bf16; x itself without a residual)
//   y   = sum * inv_rms * weight,   inv_rms = 1 / sqrt(mean(sum^2) + eps)
// Statistics and products in fp32, over the rounded sum, so that the backward sees the same values.
struct RmsNormForward {
  const Bf16* x;         // [rows, width]
  const Bf16* residual;  // [rows, width] or null
  const Bf16* weight;    // [width]
  Bf16* sum;             // [rows, width]; may be x or residual; unused without a residual
  Bf16* y;               // [rows, width]
  float* inv_rms;        // [rows]
  int rows;
  int width;
  float eps;
};

cudaError_t rms_norm_forward(const RmsNormForward& args, cudaStream_t stream);

// dx = dresidual + inv_rms * (dy * weight - sum * inv_rms^2 * mean(dy * weight * sum))
// dweight = sum over rows of dy * sum * inv_rms: partial sums of fixed rows, then the partials from
// first to last. Two runs give equal bits, on any device.
struct RmsNormBackward {
  const Bf16* dy;         // [rows, width]
  const Bf16* sum;        // [rows, width] what the forward normalised
  const Bf16* weight;     // [width]
  const float* inv_rms;   // [rows]
  const Bf16* dresidual;  // [rows, width] gradient that reaches `sum` past the norm, or null
  Bf16* dx;               // [rows, width] gradient of `sum`; may be dy or dresidual
  Bf16* dweight;          // [width]
  float* partials;        // rms_norm_partial_floats(rows, width)
  int rows;
  int width;
  bool is_accumulating;  // dweight += instead of =
};

std::int64_t rms_norm_partial_floats(int rows, int width);
cudaError_t rms_norm_backward(const RmsNormBackward& args, cudaStream_t stream);

}  // namespace zeroproof::cuda
