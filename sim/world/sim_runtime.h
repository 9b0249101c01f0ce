#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/cpu_ops.h"
#include "sim/world/late_ops.h"
#include "sim/world/sim_group.h"
#include "sim/world/sim_kernels.h"
#include "sim/world/sim_memory.h"
#include "sim/world/sim_stream.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/engine/runtime/runtime.h"

namespace zeroproof::sim {

// Virtual time: the steps of the world, each a microsecond.
class SimClock final : public Clock {
 public:
  explicit SimClock(const RankControl& control) : control_(control) {}
  std::int64_t now_ns() const override {
    return static_cast<std::int64_t>(control_.steps()) * 1000;
  }

 private:
  const RankControl& control_;
};

struct SimRuntimeOptions {
  int world_size = 1;
  host::MemoryOptions memory;
  RankObservers observers;
  bool is_compute_late = false;
  bool waits_before_first_use = true;  // see SimWorldOptions
};

// One rank of a SimWorld: the seam's simulated twin.
class SimRuntime final : public Runtime {
 public:
  // `control` must outlive it.
  SimRuntime(const SimRuntimeOptions& options, RankControl& control);
  ~SimRuntime() override;
  void join(host::GroupMembers members, std::shared_ptr<MeetingPoint> point);  // by GroupKind

  int rank() const override { return control_.rank(); }
  int world_size() const override { return options_.world_size; }
  Device device() const override { return options_.memory.device; }
  Clock& clock() override { return clock_; }
  Memory& memory() override { return memory_; }
  Kernels& kernels() override { return kernels_; }
  const Ops& ops() const override { return late_ops_ ? static_cast<const Ops&>(*late_ops_) : ops_; }
  Stream& stream(StreamRole role) override { return streams_.of(role); }
  Stream& user_stream(StreamIndex index) override { return streams_.user(index); }
  ProcessGroup& group(GroupKind kind) override { return at(kind); }
  GraphCapture* graphs() override { return nullptr; }
  std::optional<std::string> poll_error() override;
  Journal* journal() override { return options_.observers.journal; }
  FaultPoint* faults() override { return options_.observers.faults; }

  SimStreams& streams() { return streams_; }
  const SimStreams& streams() const { return streams_; }
  void abort(const std::string& reason);

 private:
  SimGroup& at(GroupKind kind) { return *groups_[static_cast<std::size_t>(kind)]; }

  SimRuntimeOptions options_;
  RankControl& control_;
  std::shared_ptr<LateDevice> late_;  // null: the compute stream runs in step
  SimClock clock_;
  SimMemory memory_;
  SimStreams streams_;
  SimKernels kernels_;
  CpuOps ops_;
  std::unique_ptr<LateOps> late_ops_;
  std::vector<std::unique_ptr<SimGroup>> groups_;
};

}  // namespace zeroproof::sim
