#include "engine/runtime/cuda/gpu_memory.h"

#include <cuda_runtime_api.h>

#include "engine/runtime/cuda/check.h"

namespace zeroproof {
namespace {

cudaMemPool_t pool_of(int gpu) {
  cudaMemPool_t pool = nullptr;
  ZP_CUDA(cudaDeviceGetDefaultMemPool(&pool, gpu));
  return pool;
}

}  // namespace

std::int64_t gpu_peak_bytes(int gpu) {
  std::uint64_t bytes = 0;
  ZP_CUDA(cudaMemPoolGetAttribute(pool_of(gpu), cudaMemPoolAttrUsedMemHigh, &bytes));
  return static_cast<std::int64_t>(bytes);
}

void reset_gpu_peak(int gpu) {
  std::uint64_t none = 0;
  ZP_CUDA(cudaMemPoolSetAttribute(pool_of(gpu), cudaMemPoolAttrUsedMemHigh, &none));
}

}  // namespace zeroproof
