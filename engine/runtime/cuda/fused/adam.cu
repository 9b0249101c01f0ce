#include <cuda_bf16.h>

#include "engine/runtime/cuda/fused/adam.h"
#include "engine/runtime/cuda/kernels/vectors.cuh"

// Bytes, 28 an element with a bf16 gradient and copy: M267's 266.9 M elements 7.47 GB = 1.74 ms at
// 4.3 TB/s. Some 30 instructions an element: 0.3 ms.

namespace zeroproof::cuda {
namespace {

constexpr int kAdamThreads = 256;
constexpr int kAtOnce = 2;  // quads of a thread, whose loads are in flight together

struct alignas(8) Bf16Quad {
  __nv_bfloat16 at[4];
};
struct Quads {
  float4 parameter, exp_avg, exp_avg_sq, grad;
};

__device__ float4 quad_of(const float* data, std::int64_t i) {
  return __ldcs(reinterpret_cast<const float4*>(data) + i);
}
__device__ float4 quad_of(const __nv_bfloat16* data, std::int64_t i) {
  const Bf16Quad of = reinterpret_cast<const Bf16Quad*>(data)[i];
  return {__bfloat162float(of.at[0]), __bfloat162float(of.at[1]), __bfloat162float(of.at[2]),
          __bfloat162float(of.at[3])};
}
__device__ void set_quad(void* data, std::int64_t i, const float4& value) {
  __stcs(static_cast<float4*>(data) + i, value);
}

struct FloatRule {
  float decay, lerp, beta2, rest2, inverse_correction2, rate, eps;
};

__device__ void update(const FloatRule& rule, float& p, float& m, float& v, float g) {
  m = fmaf(g - m, rule.lerp, m);
  v = fmaf(rule.rest2 * g, g, rule.beta2 * v);
  const float root = fmaf(sqrtf(v), rule.inverse_correction2, rule.eps);
  p = fmaf(rule.rate, __fdividef(m, root), p * rule.decay);
}

__device__ void update(const FloatRule& rule, Quads& of) {
  update(rule, of.parameter.x, of.exp_avg.x, of.exp_avg_sq.x, of.grad.x);
  update(rule, of.parameter.y, of.exp_avg.y, of.exp_avg_sq.y, of.grad.y);
  update(rule, of.parameter.z, of.exp_avg.z, of.exp_avg_sq.z, of.grad.z);
  update(rule, of.parameter.w, of.exp_avg.w, of.exp_avg_sq.w, of.grad.w);
}

template <class G>
__device__ Quads load_quads(const AdamTensors& of, std::int64_t i) {
  return {quad_of(static_cast<const float*>(of.parameter.data), i),
          quad_of(static_cast<const float*>(of.exp_avg.data), i),
          quad_of(static_cast<const float*>(of.exp_avg_sq.data), i),
          quad_of(static_cast<const G*>(of.grad.data), i)};
}

__device__ void store_quads(const AdamTensors& of, std::int64_t i, const Quads& quads) {
  set_quad(of.parameter.data, i, quads.parameter);
  set_quad(of.exp_avg.data, i, quads.exp_avg);
  set_quad(of.exp_avg_sq.data, i, quads.exp_avg_sq);
  if (of.copy.elements == 0) return;
  const float4& p = quads.parameter;
  static_cast<Bf16Quad*>(of.copy.data)[i] = {__float2bfloat16_rn(p.x), __float2bfloat16_rn(p.y),
                                             __float2bfloat16_rn(p.z), __float2bfloat16_rn(p.w)};
}

template <class G>
__global__ void __launch_bounds__(kAdamThreads) fast_adam_kernel(AdamTensors of, AdamRule given) {
  const FloatRule rule = {static_cast<float>(given.is_decaying ? given.decay : 1.0),
                          static_cast<float>(given.lerp),
                          static_cast<float>(given.beta2),
                          static_cast<float>(given.rest2),
                          static_cast<float>(1.0 / given.correction2),
                          static_cast<float>(given.rate),
                          static_cast<float>(given.eps)};
  const std::int64_t quads = of.parameter.elements / 4;
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * (kAdamThreads * kAtOnce) + threadIdx.x;
  Quads loaded[kAtOnce];
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k)
    if (const std::int64_t i = first + k * kAdamThreads; i < quads)
      loaded[k] = load_quads<G>(of, i);
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    const std::int64_t i = first + k * kAdamThreads;
    if (i >= quads) return;
    update(rule, loaded[k]);
    store_quads(of, i, loaded[k]);
  }
}

template <class G>
bool launch_with(cudaStream_t stream, const AdamTensors& of, const AdamRule& rule) {
  if (!has_packs<G>(of.grad)) return false;
  const std::int64_t quads = of.parameter.elements / 4;
  constexpr std::int64_t kQuads = kAdamThreads * kAtOnce;
  const auto blocks = static_cast<unsigned>((quads + kQuads - 1) / kQuads);
  fast_adam_kernel<G><<<blocks, kAdamThreads, 0, stream>>>(of, rule);
  return true;
}

}  // namespace

bool launch_fast_adam(cudaStream_t stream, const AdamTensors& of, const AdamRule& rule) {
  const bool fits = of.parameter.elements > 0 && of.parameter.elements % 4 == 0 &&
                    has_packs<float>(of.parameter) && has_packs<float>(of.exp_avg) &&
                    has_packs<float>(of.exp_avg_sq) &&
                    (of.copy.elements == 0 || has_packs<__nv_bfloat16>(of.copy)) &&
                    !rule.is_maximizing && (!rule.is_decaying || rule.is_decay_decoupled);
  return fits &&
         (launch_with<float>(stream, of, rule) || launch_with<__nv_bfloat16>(stream, of, rule));
}

}  // namespace zeroproof::cuda
