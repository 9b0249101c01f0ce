#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "engine/runtime/memory_account.h"
#include "zeroproof/internal/engine/runtime/access.h"
#include "zeroproof/internal/engine/runtime/memory.h"

namespace zeroproof::host {

struct MemoryOptions {
  Device device;
  bool is_poisoned = true;                  // new memory is NaN, so that garbage shows; else zeros
  std::int64_t capacity_bytes = INT64_MAX;  // of each placement
  AccessObserver* accesses = nullptr;       // hears of freed memory; must outlive the HostMemory
};

// Storage on the heap, counted as if on a device. The last tensor on it may go on any thread.
class HostMemory final : public Memory {
 public:
  explicit HostMemory(const MemoryOptions& options);
  ~HostMemory() override;  // what is freed later is freed unheard
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  Tensor allocate(std::int64_t elements, DType dtype,
                  Placement placement = Placement::device) override;
  MemoryStats stats(Placement placement) const override;
  void reset_peak() override;

 private:
  const std::shared_ptr<MemoryAccount>& account(Placement placement) const {
    return accounts_[static_cast<std::size_t>(placement)];
  }

  MemoryOptions options_;
  std::array<std::shared_ptr<MemoryAccount>, 2> accounts_;  // shared with the leases
};

}  // namespace zeroproof::host
