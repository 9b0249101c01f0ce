#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "zeroproof/internal/engine/runtime/access.h"
#include "zeroproof/internal/engine/runtime/memory.h"

namespace zeroproof {

// What one placement has in use, for the runtimes' Memory. Only the live bytes are touched by other
// threads; the observer is heard on the thread of its rank, or while no rank runs.
class MemoryAccount {
 public:
  explicit MemoryAccount(AccessObserver* accesses) : accesses_(accesses) {}

  // For Storage::lease: counts until the storage, whose member it becomes, is gone.
  static std::shared_ptr<void> lease(std::shared_ptr<MemoryAccount> account, const Storage& on,
                                     std::int64_t bytes);

  MemoryStats stats() const { return {live_, peak_, allocations_}; }
  std::int64_t live_bytes() const { return live_; }
  void reset_peak() { peak_ = live_; }
  void stop_observing() { accesses_ = nullptr; }

 private:
  struct Lease;

  std::atomic<std::int64_t> live_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t allocations_ = 0;
  AccessObserver* accesses_;
};

}  // namespace zeroproof
