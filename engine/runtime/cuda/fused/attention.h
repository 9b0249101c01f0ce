#pragma once

#include <compare>

#include "engine/runtime/cuda/fused/device_types.h"

namespace zeroproof::cuda {

// Causal attention with heads of 64 and scale 1/8 over [batch, seq, heads, 64]. Element (b, s, h,
// i) of a tensor lies at (b * seq + s) * stride + h * 64 + i, so q, k and v may be slices of one
// packed [batch, seq, 3 * heads * 64]: the same pointers with offsets 0, heads * 64, 2 * heads * 64
// and the stride 3 * heads * 64. Strides are multiples of 8.
struct AttentionShape {
  int batch = 0;
  int heads = 0;
  int seq = 0;
  std::int64_t q_stride = 0;    // of q, k and dq, dk
  std::int64_t v_stride = 0;    // of v and dv
  std::int64_t out_stride = 0;  // of out and dout

  friend auto operator<=>(const AttentionShape&, const AttentionShape&) = default;
};

struct AttentionForward {
  const Bf16* q;
  const Bf16* k;
  const Bf16* v;
  Bf16* out;
  float* log_sums;  // [batch, heads, seq] log(sum(exp(score))), natural
};

struct AttentionBackward {
  const Bf16* q;
  const Bf16* k;
  const Bf16* v;
  const Bf16* out;
  const Bf16* dout;
  const float* log_sums;
  Bf16* dq;  // of q's layout
  Bf16* dk;
  Bf16* dv;
};

// Our own kernels, the twin of CudnnAttention: any seq. No atomics: the backward recomputes the
// scores once for dk and dv and once for dq, and two runs give equal bits.
cudaError_t attention_forward(const AttentionShape& shape, const AttentionForward& args,
                              cudaStream_t stream);

// `deltas`: attention_delta_floats(shape), for the sums of out * dout.
std::int64_t attention_delta_floats(const AttentionShape& shape);
cudaError_t attention_backward(const AttentionShape& shape, const AttentionBackward& args,
                               float* deltas, cudaStream_t stream);

}  // namespace zeroproof::cuda
