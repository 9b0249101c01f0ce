#include "engine/runtime/cuda/kernels/elements.cuh"
#include "engine/runtime/cuda/kernels/launches.h"

namespace zeroproof::cuda {
namespace {

__global__ void adam_kernel(AdamTensors of, AdamRule rule) {
  for (std::int64_t i = first_element(); i < of.parameter.elements; i += grid_stride()) {
    AdamElement element = {load(of.parameter, i), load(of.grad, i), load(of.exp_avg, i),
                           load(of.exp_avg_sq, i)};
    update_adam<DeviceRounding>(rule, element);
    store(of.parameter, i, element.parameter);
    store(of.exp_avg, i, element.exp_avg);
    store(of.exp_avg_sq, i, element.exp_avg_sq);
  }
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

void launch_adam(cudaStream_t stream, const AdamTensors& tensors, const AdamRule& rule) {
  if (tensors.parameter.elements == 0) return;
  adam_kernel<<<blocks_for(tensors.parameter.elements), kThreads, 0, stream>>>(tensors, rule);
}

void launch_sgd(cudaStream_t stream, const SgdTensors& tensors, const SgdRule& rule) {
  if (tensors.parameter.elements == 0) return;
  sgd_kernel<<<blocks_for(tensors.parameter.elements), kThreads, 0, stream>>>(tensors, rule);
}

}  // namespace zeroproof::cuda
