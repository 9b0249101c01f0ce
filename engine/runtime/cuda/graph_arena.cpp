#include "engine/runtime/cuda/graph_arena.h"

#include <algorithm>
#include <utility>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/cuda/outside_capture.h"

namespace zeroproof::cuda {

GraphArena::GraphArena(std::shared_ptr<SharedSegments> segments) : shared_(std::move(segments)) {
  ZP_CUDA(cudaStreamCreateWithFlags(&queue_, cudaStreamNonBlocking));
}

// The owner that drops the last of it has waited for the work on it.
GraphArena::~GraphArena() {
  for (void* segment : segments_) {
    if (shared_)
      shared_->heap().give_back(segment, {});
    else
      cudaFreeAsync(segment, queue_);
  }
  cudaStreamSynchronize(queue_);
  cudaStreamDestroy(queue_);
}

void* GraphArena::take(std::size_t bytes, const StreamHeap::Wait& wait) {
  constexpr std::size_t kSegmentBytes = std::size_t{64} << 20;
  if (void* const found = heap_.take(bytes, wait)) return found;
  const std::size_t size = std::max(StreamHeap::aligned(bytes), kSegmentBytes);
  void* const segment = new_segment(size, wait);
  segments_.push_back(segment);
  heap_.add(segment, size);
  return heap_.take(bytes, wait);
}

void* GraphArena::new_segment(std::size_t bytes, const StreamHeap::Wait& wait) {
  const OutsideCapture outside;
  void* data = nullptr;
  if (shared_) {
    data = shared_->take(bytes, wait);
    if (data == nullptr) ZP_CUDA(cudaErrorMemoryAllocation);
    return data;
  }
  ZP_CUDA(cudaMallocAsync(&data, bytes, queue_));
  ZP_CUDA(cudaStreamSynchronize(queue_));
  return data;
}

}  // namespace zeroproof::cuda
