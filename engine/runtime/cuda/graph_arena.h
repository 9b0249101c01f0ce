#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/runtime/cuda/shared_segments.h"
#include "engine/runtime/stream_heap.h"

namespace zeroproof::cuda {

// The memory of one CUDA graph, which each replay finds where the capture had it: segments of the
// GPU's pool, given back as a whole when the graph and the last tensor on it are gone. What comes
// back during the capture is given again. Used by the thread that captures, on the current device.
class GraphArena {
 public:
  // `segments`: what the GPU has in place of a pool; see StreamPool.
  explicit GraphArena(std::shared_ptr<SharedSegments> segments);
  ~GraphArena();
  GraphArena(const GraphArena&) = delete;
  GraphArena& operator=(const GraphArena&) = delete;

  // As StreamHeap's.
  void* take(std::size_t bytes, const StreamHeap::Wait& wait);
  void give_back(void* data, std::vector<StreamEvent> pending_uses) {
    heap_.give_back(data, std::move(pending_uses));
  }

 private:
  void* new_segment(std::size_t bytes, const StreamHeap::Wait& wait);

  cudaStream_t queue_ = nullptr;  // is never captured
  std::shared_ptr<SharedSegments> shared_;
  StreamHeap heap_;
  std::vector<void*> segments_;
};

}  // namespace zeroproof::cuda
