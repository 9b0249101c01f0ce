#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace zeroproof::cuda {

// RuntimeFault with the call, CUDA's name of the error and its text, unless it succeeded.
void check(cudaError_t result, const char* call);
void check(ncclResult_t result, const char* call);

}  // namespace zeroproof::cuda

#define ZP_CUDA(call) ::zeroproof::cuda::check((call), #call)
#define ZP_NCCL(call) ::zeroproof::cuda::check((call), #call)
