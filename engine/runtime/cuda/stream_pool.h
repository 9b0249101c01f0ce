#pragma once

#include "engine/runtime/kept_memory.h"

namespace zeroproof::cuda {

class Gpu;

// Stream-ordered memory of one GPU's pool, given in the order of its compute stream.
class StreamPool final : public KeptMemory::Pool {
 public:
  // `gpu` must outlive it.
  explicit StreamPool(Gpu& gpu) : gpu_(gpu) {}

  void* take(std::size_t bytes) override;
  // Behind the compute stream and `behind`. Errors have nobody to go to; the next call meets them.
  void give_back(void* data, const KeptMemory::Uses& behind) override;
  bool is_over(const KeptMemory::Use& use) override;

 private:
  Gpu& gpu_;
};

}  // namespace zeroproof::cuda
