#include "engine/runtime/cuda/peers.h"

#include <cuda_runtime_api.h>

#include "engine/runtime/cuda/check.h"

namespace zeroproof::cuda {

bool share_memory(const std::vector<int>& ordinals) {
  for (const int from : ordinals)
    for (const int to : ordinals) {
      int is_reached = 1;
      if (from != to) ZP_CUDA(cudaDeviceCanAccessPeer(&is_reached, from, to));
      if (is_reached == 0) return false;
    }
  for (const int owner : ordinals) {
    cudaMemPool_t pool = nullptr;
    ZP_CUDA(cudaDeviceGetDefaultMemPool(&pool, owner));
    for (const int user : ordinals) {
      if (user == owner) continue;
      cudaMemAccessDesc access{};
      access.location.type = cudaMemLocationTypeDevice;
      access.location.id = user;
      access.flags = cudaMemAccessFlagsProtReadWrite;
      ZP_CUDA(cudaMemPoolSetAccess(pool, &access, 1));
    }
  }
  return true;
}

}  // namespace zeroproof::cuda
