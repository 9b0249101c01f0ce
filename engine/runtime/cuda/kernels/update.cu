#include "engine/runtime/cuda/kernels/elements.cuh"
#include "engine/runtime/cuda/kernels/launches.h"
#include "engine/runtime/cuda/kernels/vectors.cuh"

namespace zeroproof::cuda {
namespace {

// Where everything that is rounded is float32. A square root of a float, rounded to float, is that
// of float32: a double's has more than twice the bits and rounds to the same.
struct FloatRounding {
  DType dtype;
  __device__ double operator()(double value) const {
    return static_cast<double>(static_cast<float>(value));
  }
  __device__ double root(double value) const {
    return static_cast<double>(__fsqrt_rn(static_cast<float>(value)));
  }
};

__global__ void adam_kernel(AdamTensors of, AdamRule rule) {
  for (std::int64_t i = first_element(); i < of.parameter.elements; i += grid_stride()) {
    AdamElement element = {load(of.parameter, i), load(of.grad, i), load(of.exp_avg, i),
                           load(of.exp_avg_sq, i)};
    update_adam<DeviceRounding>(rule, element);
    store(of.parameter, i, element.parameter);
    if (of.copy.elements > 0) store(of.copy, i, element.parameter);
    store(of.exp_avg, i, element.exp_avg);
    store(of.exp_avg_sq, i, element.exp_avg_sq);
  }
}

// Of float32 master weights and moments, a pack at a time: 28 bytes an element with gradient and
// copy in bfloat16, so memory bounds it wherever the traffic hides the arithmetic.
template <class G, bool kHasCopy>
__global__ void adam_packs_kernel(AdamTensors of, AdamRule rule) {
  const std::int64_t packs = of.parameter.elements / kPack;
  for (std::int64_t i = first_element(); i < packs; i += grid_stride()) {
    Pack<float> p = pack<float>(of.parameter, i);
    const Pack<G> g = pack<G>(of.grad, i);
    Pack<float> m = pack<float>(of.exp_avg, i);
    Pack<float> v = pack<float>(of.exp_avg_sq, i);
    for (int k = 0; k < kPack; ++k) {
      AdamElement element = {wide(p.at[k]), wide(g.at[k]), wide(m.at[k]), wide(v.at[k])};
      update_adam<FloatRounding>(rule, element);
      p.at[k] = static_cast<float>(element.parameter);
      m.at[k] = static_cast<float>(element.exp_avg);
      v.at[k] = static_cast<float>(element.exp_avg_sq);
    }
    pack<float>(of.parameter, i) = p;
    if constexpr (kHasCopy) {
      Pack<__nv_bfloat16> copy;
      for (int k = 0; k < kPack; ++k) copy.at[k] = __float2bfloat16_rn(p.at[k]);
      pack<__nv_bfloat16>(of.copy, i) = copy;
    }
    pack<float>(of.exp_avg, i) = m;
    pack<float>(of.exp_avg_sq, i) = v;
  }
}

template <class G>
bool launch_adam_packs(cudaStream_t stream, const AdamTensors& of, const AdamRule& rule) {
  // A coupled decay rounds to the dtype of the gradient, which the fast rounding does not know.
  const bool rounds_grad = rule.is_decaying && !rule.is_decay_decoupled && sizeof(G) == 2;
  if (of.parameter.elements % kPack != 0 || rounds_grad || !has_packs<float>(of.parameter) ||
      !has_packs<G>(of.grad) || !has_packs<float>(of.exp_avg) || !has_packs<float>(of.exp_avg_sq))
    return false;
  const unsigned blocks = blocks_for(of.parameter.elements / kPack);
  if (of.copy.elements == 0)
    adam_packs_kernel<G, false><<<blocks, kThreads, 0, stream>>>(of, rule);
  else if (has_packs<__nv_bfloat16>(of.copy))
    adam_packs_kernel<G, true><<<blocks, kThreads, 0, stream>>>(of, rule);
  else
    return false;
  return true;
}

__global__ void sgd_kernel(SgdTensors of, SgdRule rule) {
  for (std::int64_t i = first_element(); i < of.parameter.elements; i += grid_stride()) {
    SgdElement element = {load(of.parameter, i), load(of.grad, i), 0.0};
    if (rule.has_momentum && !rule.is_first) element.momentum_buffer = load(of.momentum_buffer, i);
    update_sgd<DeviceRounding>(rule, element);
    store(of.parameter, i, element.parameter);
    if (rule.has_momentum) store(of.momentum_buffer, i, element.momentum_buffer);
  }
}

}  // namespace

cudaError_t launch_adam(cudaStream_t stream, const AdamTensors& tensors, const AdamRule& rule) {
  if (tensors.parameter.elements == 0) return cudaSuccess;
  if (launch_adam_packs<float>(stream, tensors, rule) ||
      launch_adam_packs<__nv_bfloat16>(stream, tensors, rule))
    return cudaGetLastError();
  adam_kernel<<<blocks_for(tensors.parameter.elements), kThreads, 0, stream>>>(tensors, rule);
  return cudaGetLastError();
}

cudaError_t launch_sgd(cudaStream_t stream, const SgdTensors& tensors, const SgdRule& rule) {
  if (tensors.parameter.elements == 0) return cudaSuccess;
  sgd_kernel<<<blocks_for(tensors.parameter.elements), kThreads, 0, stream>>>(tensors, rule);
  return cudaGetLastError();
}

}  // namespace zeroproof::cuda
