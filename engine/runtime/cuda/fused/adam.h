#pragma once

#include <cuda_runtime_api.h>

#include "engine/runtime/cuda/kernels/launches.h"

namespace zeroproof::cuda {

// AdamW with decoupled decay, or none, of float32 master weights and moments in float32
// arithmetic, as upstream's fused kernel has it: bound by memory, where launch_adam() with its
// bits of the host is bound by instructions. False, and no kernel is queued, where it does not fit;
// the kernel's arguments are the tensors and the rule.
bool launch_fast_adam(cudaStream_t stream, const AdamTensors& tensors, const AdamRule& rule);

}  // namespace zeroproof::cuda
