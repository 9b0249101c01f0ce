#include "engine/runtime/cuda/stream_pool.h"

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/cuda/gpu.h"

namespace zeroproof::cuda {

void* StreamPool::take(std::size_t bytes) {
  gpu_.make_current();
  void* data = nullptr;
  const cudaError_t result = cudaMallocAsync(&data, bytes, gpu_.compute_handle());
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  ZP_CUDA(result);
  return data;
}

void StreamPool::give_back(void* data, const KeptMemory::Uses& pending_uses) {
  wait_for_readers();
  cudaSetDevice(gpu_.ordinal());
  cudaStream_t last = gpu_.compute_handle();
  for (const KeptMemory::Use& use : pending_uses) {
    if (is_over(use)) continue;
    cudaStream_t queue = gpu_.handle(static_cast<StreamRole>(use.queue));
    try {
      gpu_.wait_ahead(queue, gpu_.record_before_deferred(last));
    } catch (...) {
      cudaStreamSynchronize(last);
    }
    last = queue;
  }
  cudaFreeAsync(data, last);
}

void StreamPool::add_reader(const void* reader, std::function<void()> wait) {
  readers_.emplace_back(reader, std::move(wait));
}

void StreamPool::remove_reader(const void* reader) {
  std::erase_if(readers_, [reader](const auto& of) { return of.first == reader; });
}

// One that has failed does not read any more.
void StreamPool::wait_for_readers() const {
  for (const auto& [reader, wait] : readers_) {
    try {
      wait();
    } catch (...) {
      continue;
    }
  }
}

bool StreamPool::is_over(const KeptMemory::Use& use) {
  return gpu_.is_over(use.queue, use.marks);
}

}  // namespace zeroproof::cuda
