#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace zeroproof::cuda {

// The bits of a bfloat16, so that g++ needs no CUDA type. The kernels read them as __nv_bfloat16.
using Bf16 = std::uint16_t;

// Every launch of this folder queues on the stream it is given, does not allocate, never waits for
// the device, and may be captured into a graph. It returns cudaErrorInvalidValue for a shape it
// does not support, else the launch's own error. Pointers are on the device, 16-byte aligned.

}  // namespace zeroproof::cuda
