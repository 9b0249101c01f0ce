#include "engine/runtime/cuda/stream_pool.h"

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/cuda/gpu.h"

namespace zeroproof::cuda {

void* StreamPool::take(std::size_t bytes) {
  gpu_.make_current();
  if (segments_)
    return segments_->take(
        bytes, [this](StreamEvent event) { gpu_.wait_ahead(gpu_.compute_handle(), event); });
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
  if (segments_) return give_back_part(data, pending_uses);
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

// A collective ends after all have read, so the order of the queues alone says when it is free.
void StreamPool::give_back_part(void* data, const KeptMemory::Uses& pending_uses) {
  std::vector<StreamEvent> events;
  try {
    for (const KeptMemory::Use& use : pending_uses)
      if (!is_over(use))
        events.push_back(
            gpu_.record_before_deferred(gpu_.handle(static_cast<StreamRole>(use.queue))));
  } catch (...) {
    return;  // it stays taken
  }
  segments_->heap().give_back(data, std::move(events));
}

void StreamPool::free(void* data) {
  cudaSetDevice(gpu_.ordinal());
  if (!segments_) {
    cudaFree(data);
    return;
  }
  cudaDeviceSynchronize();
  segments_->heap().give_back(data, {});
}

cudaMemPool_t StreamPool::handle() const {
  cudaMemPool_t pool = nullptr;
  ZP_CUDA(cudaDeviceGetDefaultMemPool(&pool, gpu_.ordinal()));
  return pool;
}

std::int64_t StreamPool::peak_bytes() const {
  if (segments_) return static_cast<std::int64_t>(segments_->heap().most_used_bytes());
  std::uint64_t bytes = 0;
  ZP_CUDA(cudaMemPoolGetAttribute(handle(), cudaMemPoolAttrUsedMemHigh, &bytes));
  return static_cast<std::int64_t>(bytes);
}

void StreamPool::reset_peak() {
  if (segments_) return segments_->heap().reset_most_used();
  std::uint64_t none = 0;
  ZP_CUDA(cudaMemPoolSetAttribute(handle(), cudaMemPoolAttrUsedMemHigh, &none));
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
