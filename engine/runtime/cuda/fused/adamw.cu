#include <cmath>

#include "engine/runtime/cuda/fused/adamw.h"
#include "engine/runtime/cuda/fused/vectors.cuh"

// Bytes a parameter, bf16: grad 2, m, v, master 12 read; m, v, master 12, weight 2 written = 28 B.
// M267 whole: 7.47 GB = 1.74 ms at 4.3 TB/s; a quarter: 0.43 ms.

namespace zeroproof::cuda {
namespace {

constexpr int kThreads = 256;

struct Element {
  float master;
  float m;
  float v;
};

__device__ __forceinline__ Element updated(Element e, float grad, const AdamW& args,
                                           const AdamWStep& step) {
  grad *= step.grad_scale;
  e.m += (grad - e.m) * (1.0F - args.beta1);
  e.v = e.v * args.beta2 + grad * grad * (1.0F - args.beta2);
  const float divisor = sqrtf(e.v) * step.inv_correction + args.eps;
  e.master = e.master * step.decay - step.rate * e.m / divisor;
  return e;
}

__device__ __forceinline__ Float8 load_floats(const float* source) {
  Float8 out;
  *reinterpret_cast<float4*>(out.v) = __ldcs(reinterpret_cast<const float4*>(source));
  *reinterpret_cast<float4*>(out.v + 4) = __ldcs(reinterpret_cast<const float4*>(source) + 1);
  return out;
}

__device__ __forceinline__ void store_floats(float* target, const Float8& values) {
  const float* v = values.v;
  __stcs(reinterpret_cast<float4*>(target), make_float4(v[0], v[1], v[2], v[3]));
  __stcs(reinterpret_cast<float4*>(target) + 1, make_float4(v[4], v[5], v[6], v[7]));
}

__device__ __forceinline__ Float8 load_grad(const Bf16* grad) {
  return widen(load_pack_once(grad));
}
__device__ __forceinline__ Float8 load_grad(const float* grad) {
  return load_floats(grad);
}

__device__ __forceinline__ float one_grad(const Bf16* grad) {
  return __bfloat162float(__ushort_as_bfloat16(*grad));
}
__device__ __forceinline__ float one_grad(const float* grad) {
  return *grad;
}

template <class Grad>
__global__ void __launch_bounds__(kThreads)
    adamw_kernel(AdamW args, const Grad* grads, Bf16* weights) {
  const AdamWStep step = args.device_step == nullptr ? args.step : *args.device_step;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * 8;
  if (first + 8 <= args.elements) {
    const Float8 grad = load_grad(grads + first);
    Float8 master = load_floats(args.master + first);
    Float8 m = load_floats(args.exp_avg + first);
    Float8 v = load_floats(args.exp_avg_sq + first);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const Element e = updated({master.v[i], m.v[i], v.v[i]}, grad.v[i], args, step);
      master.v[i] = e.master;
      m.v[i] = e.m;
      v.v[i] = e.v;
    }
    store_floats(args.master + first, master);
    store_floats(args.exp_avg + first, m);
    store_floats(args.exp_avg_sq + first, v);
    if (weights != nullptr) store_pack(weights + first, narrow(master));
    return;
  }
  for (std::int64_t i = first; i < args.elements; ++i) {
    const Element e = updated({args.master[i], args.exp_avg[i], args.exp_avg_sq[i]},
                              one_grad(grads + i), args, step);
    args.master[i] = e.master;
    args.exp_avg[i] = e.m;
    args.exp_avg_sq[i] = e.v;
    if (weights != nullptr) weights[i] = __bfloat16_as_ushort(__float2bfloat16_rn(e.master));
  }
}

unsigned blocks_for(std::int64_t elements) {
  return static_cast<unsigned>((elements + 8 * kThreads - 1) / (8 * kThreads));
}

}  // namespace

AdamWStep adamw_step(const AdamWOptions& options, std::int64_t step, double grad_scale) {
  const auto steps = static_cast<double>(step);
  const double correction1 = 1.0 - std::pow(options.beta1, steps);
  const double correction2 = std::sqrt(1.0 - std::pow(options.beta2, steps));
  return {static_cast<float>(options.lr / correction1), static_cast<float>(1.0 / correction2),
          static_cast<float>(1.0 - options.lr * options.weight_decay),
          static_cast<float>(grad_scale)};
}

cudaError_t adamw_bf16(const AdamW& args, const Bf16* grad, Bf16* weight, cudaStream_t stream) {
  if (args.elements <= 0 || weight == nullptr) return cudaErrorInvalidValue;
  adamw_kernel<Bf16><<<blocks_for(args.elements), kThreads, 0, stream>>>(args, grad, weight);
  return cudaGetLastError();
}

cudaError_t adamw_fp32(const AdamW& args, const float* grad, cudaStream_t stream) {
  if (args.elements <= 0) return cudaErrorInvalidValue;
  adamw_kernel<float><<<blocks_for(args.elements), kThreads, 0, stream>>>(args, grad, nullptr);
  return cudaGetLastError();
}

}  // namespace zeroproof::cuda
