#pragma once

#include "engine/runtime/host/host_memory.h"
#include "sim/world/rank_control.h"

namespace zeroproof::sim {

// The host's memory, of which an allocation can fail. One beyond the capacity is a finding: live
// bytes are to stay below the bound, in every order.
class SimMemory final : public Memory {
 public:
  // `control` must outlive it.
  SimMemory(const host::MemoryOptions& options, RankControl& control)
      : memory_(options), control_(control) {}

  Tensor allocate(std::int64_t elements, DType dtype,
                  Placement placement = Placement::device) override;
  MemoryStats stats(Placement placement) const override { return memory_.stats(placement); }
  void reset_peak() override { memory_.reset_peak(); }

 private:
  host::HostMemory memory_;
  RankControl& control_;
};

}  // namespace zeroproof::sim
