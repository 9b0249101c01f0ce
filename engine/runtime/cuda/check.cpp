#include "engine/runtime/cuda/check.h"

#include <fmt/format.h>

#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::cuda {

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  throw RuntimeFault(
      fmt::format("{} failed: {}: {}", call, cudaGetErrorName(result), cudaGetErrorString(result)));
}

void check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw RuntimeFault(fmt::format("{} failed: {} ({})", call, ncclGetErrorString(result),
                                 static_cast<int>(result)));
}

}  // namespace zeroproof::cuda
