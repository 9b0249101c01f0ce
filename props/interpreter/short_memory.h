#pragma once

#include <cstdint>

#include "props/train/runtime_decorator.h"

namespace zeroproof::program {

// A device that has no more memory at one allocation of an armed call. What has no elements needs
// none, and the host has enough. Not thread-safe; a rank's own.
class ShortMemory final : public Memory {
 public:
  explicit ShortMemory(Memory& inner) : inner_(inner) {}

  // The k-th from now on throws a RuntimeFault, as the runtime would; 0: none.
  void arm(int k) { left_ = k; }

  Tensor allocate(std::int64_t elements, DType dtype, Placement placement) override;
  MemoryStats stats(Placement placement) const override { return inner_.stats(placement); }
  void reset_peak() override { inner_.reset_peak(); }

 private:
  Memory& inner_;
  int left_ = 0;
};

// A rank's runtime with such a memory.
class ShortRuntime final : public train::RuntimeDecorator {
 public:
  explicit ShortRuntime(Runtime& inner) : RuntimeDecorator(inner), memory_(inner.memory()) {}

  Memory& memory() override { return memory_; }

  void arm(int k) { memory_.arm(k); }
  void disarm() { memory_.arm(0); }

 private:
  ShortMemory memory_;
};

}  // namespace zeroproof::program
