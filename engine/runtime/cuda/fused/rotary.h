#pragma once

#include "engine/runtime/cuda/fused/device_types.h"

namespace zeroproof::cuda {

// cos and sin of position * theta^(-2i/64), i < 32, side by side: [positions, 32, 2] fp32, each
// computed in double and rounded once. Made once for the longest sequence.
cudaError_t rotary_table(float* table, int positions, double theta, cudaStream_t stream);

// Rotates the q and k heads (64 wide, pairs (i, i + 32)) of packed rows [q heads | k heads | v
// heads] by their position; v is left alone. Strides are in elements between tokens, a multiple of
// 8: with `to` == `from` in place; else attention takes q and k from `to` and v from `from`, each
// by its own stride, so no copy is needed. The inverse is the backward.
struct Rotary {
  const Bf16* from;    // [batch, seq, from_stride]
  Bf16* to;            // [batch, seq, to_stride], may be `from`
  const float* table;  // of at least seq positions
  int batch;
  int seq;
  int heads;
  std::int64_t from_stride;
  std::int64_t to_stride;
  bool is_inverse;
};

cudaError_t rotary(const Rotary& args, cudaStream_t stream);

}  // namespace zeroproof::cuda
