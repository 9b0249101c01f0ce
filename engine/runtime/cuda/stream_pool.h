#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "engine/runtime/kept_memory.h"

namespace zeroproof::cuda {

class Gpu;

// Stream-ordered memory of one GPU's pool, given in the order of its compute stream.
class StreamPool final : public KeptMemory::Pool {
 public:
  // `gpu` must outlive it.
  explicit StreamPool(Gpu& gpu) : gpu_(gpu) {}

  void* take(std::size_t bytes) override;
  // Waits for the compute stream and `pending_uses`. The next call returns an error of this one.
  void give_back(void* data, const KeptMemory::Uses& pending_uses) override;
  bool is_over(const KeptMemory::Use& use) override;

  // Before memory goes back: `wait` until other hosts have queued what they read of it.
  void add_reader(const void* reader, std::function<void()> wait);
  void remove_reader(const void* reader);

 private:
  void wait_for_readers() const;

  Gpu& gpu_;
  std::vector<std::pair<const void*, std::function<void()>>> readers_;
};

}  // namespace zeroproof::cuda
