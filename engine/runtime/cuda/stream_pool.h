#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/runtime/cuda/shared_segments.h"
#include "engine/runtime/kept_memory.h"

namespace zeroproof::cuda {

class Gpu;

// Memory of one GPU, given in the order of its compute stream: of its stream-ordered pool, or in a
// process whose peers map it of segments.
class StreamPool final : public KeptMemory::Pool {
 public:
  // `gpu` must outlive it.
  explicit StreamPool(Gpu& gpu) : gpu_(gpu) {}

  // Before any memory is taken.
  void use_segments(std::shared_ptr<SharedSegments> segments) { segments_ = std::move(segments); }
  const std::shared_ptr<SharedSegments>& segments() const { return segments_; }

  void* take(std::size_t bytes) override;
  // Waits for the compute stream and `pending_uses`. The next call returns an error of this one.
  void give_back(void* data, const KeptMemory::Uses& pending_uses) override;
  bool is_over(const KeptMemory::Use& use) override;
  // At once, after all that is queued.
  void free(void* data);

  // The most that was taken at once since the reset, with what KeptMemory kept.
  std::int64_t peak_bytes() const;
  void reset_peak();

  // Before memory goes back: `wait` until other hosts have queued what they read of it.
  void add_reader(const void* reader, std::function<void()> wait);
  void remove_reader(const void* reader);

 private:
  cudaMemPool_t handle() const;
  void wait_for_readers() const;
  void give_back_part(void* data, const KeptMemory::Uses& pending_uses);

  Gpu& gpu_;
  std::shared_ptr<SharedSegments> segments_;
  std::vector<std::pair<const void*, std::function<void()>>> readers_;
};

}  // namespace zeroproof::cuda
