#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <vector>

#include "engine/runtime/cuda/gpu.h"
#include "engine/runtime/cuda/kernels/launches.h"

namespace zeroproof::cuda {

// Copies between GPUs that do not depend on each other. Copies of a captured iteration go by
// several streams: a graph starts a node only after it has seen the one before it end, so that
// copies in a row leave the links idle in between. On a stream they follow each other without that.
class PeerCopies {
 public:
  // On the current device, which is the one of `gpu`.
  explicit PeerCopies(const Gpu& gpu);
  ~PeerCopies();
  PeerCopies(const PeerCopies&) = delete;
  PeerCopies& operator=(const PeerCopies&) = delete;

  // By copy engines, or where all are small by one kernel.
  void run(cudaStream_t queue, const std::vector<CopyRange>& ranges);

 private:
  struct Lane {
    cudaStream_t stream = nullptr;
    cudaEvent_t done = nullptr;
  };

  void run_apart(cudaStream_t queue, const std::vector<CopyRange>& ranges);

  const Gpu& gpu_;
  cudaEvent_t begin_ = nullptr;
  std::array<Lane, 3> lanes_;
};

}  // namespace zeroproof::cuda
