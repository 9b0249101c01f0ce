#pragma once

#include <array>
#include <cstddef>

#include "engine/runtime/cuda/cuda_memory.h"
#include "engine/runtime/cuda/gpu.h"
#include "zeroproof/internal/engine/runtime/copy_staging_bytes.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof::cuda {

// Where one rank's copies of the peers' slices lie until they are summed. A queue has its own,
// taken from `memory` on first use and kept: the order of the queue alone says when it is free
// again.
class CopyStaging {
 public:
  static constexpr std::size_t kBytes{kCopyStagingBytes};

  CopyStaging(const Gpu& gpu, CudaMemory& memory) : gpu_(gpu), memory_(memory) {}
  CopyStaging(const CopyStaging&) = delete;
  CopyStaging& operator=(const CopyStaging&) = delete;

  // kBytes for work of this queue.
  std::byte* of(cudaStream_t queue);

 private:
  const Gpu& gpu_;
  CudaMemory& memory_;
  std::array<Tensor, Gpu::kRoles> tensors_;
};

}  // namespace zeroproof::cuda
