#pragma once

#include "engine/runtime/cuda/fused/device_types.h"

namespace zeroproof::cuda {

// What changes from step to step, as the kernel wants it. May lie in device memory, so that a
// captured graph needs no new launch parameters: then the host writes it before the graph runs.
struct AdamWStep {
  float rate;            // lr / (1 - beta1^step)
  float inv_correction;  // 1 / sqrt(1 - beta2^step)
  float decay;           // 1 - lr * weight_decay
  float grad_scale;      // the gradient is multiplied by it first: 1 / ranks, 1 / loss scale
};

struct AdamWOptions {
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
};

// `step` counts from 1.
AdamWStep adamw_step(const AdamWOptions& options, std::int64_t step, double grad_scale);

// One launch over a flat shard, optim::Adam::update's formula in fp32:
//   master *= decay;  m += (g - m) * (1 - beta1);  v = v * beta2 + g * g * (1 - beta2)
//   master -= rate * m / (sqrt(v) * inv_correction + eps);  weight = bf16(master)
struct AdamW {
  float* master;  // [elements]
  float* exp_avg;
  float* exp_avg_sq;
  std::int64_t elements;
  float beta1;
  float beta2;
  float eps;
  AdamWStep step;
  const AdamWStep* device_step;  // read instead of `step` unless null
};

// bf16 gradients and weights, fp32 master: 28 B a parameter.
cudaError_t adamw_bf16(const AdamW& args, const Bf16* grad, Bf16* weight, cudaStream_t stream);
// fp32 gradients, the weights are the master: 28 B a parameter.
cudaError_t adamw_fp32(const AdamW& args, const float* grad, cudaStream_t stream);

}  // namespace zeroproof::cuda
