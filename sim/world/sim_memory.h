#pragma once

#include <memory>
#include <utility>

#include "engine/runtime/host/host_memory.h"
#include "sim/world/late_memory.h"
#include "sim/world/rank_control.h"

namespace zeroproof::sim {

// The host's memory, of which an allocation can fail. One beyond the capacity is a finding: live
// bytes are to stay below the bound, in every order.
class SimMemory final : public Memory {
 public:
  // `control` must outlive it; `late` belongs to a late compute stream, else it is null.
  SimMemory(const host::MemoryOptions& options, RankControl& control,
            std::shared_ptr<LateDevice> late)
      : memory_(options),
        control_(control),
        late_(std::move(late)),
        is_poisoned_(options.is_poisoned) {}

  Tensor allocate(std::int64_t elements, DType dtype,
                  Placement placement = Placement::device) override;
  MemoryStats stats(Placement placement) const override { return memory_.stats(placement); }
  void reset_peak() override { memory_.reset_peak(); }

 private:
  void give_in_order(const Tensor& tensor);

  host::HostMemory memory_;
  RankControl& control_;
  std::shared_ptr<LateDevice> late_;
  bool is_poisoned_;
};

}  // namespace zeroproof::sim
