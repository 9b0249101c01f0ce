#pragma once

#include <memory>
#include <vector>

#include "engine/runtime/host/host_clock.h"
#include "engine/runtime/host/host_group.h"
#include "engine/runtime/host/host_kernels.h"
#include "engine/runtime/host/host_memory.h"
#include "engine/runtime/host/host_stream.h"
#include "model/cpu_ops.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/engine/runtime/runtime.h"

namespace zeroproof::host {

// One rank of a HostWorld.
class HostRuntime final : public Runtime {
 public:
  HostRuntime(const HostWorldOptions& options, int rank);
  void join(GroupMembers members, std::shared_ptr<Rendezvous> rendezvous);  // by GroupKind

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  Device device() const override { return device_; }
  Clock& clock() override { return clock_; }
  Memory& memory() override { return memory_; }
  Kernels& kernels() override { return kernels_; }
  const Ops& ops() const override { return ops_; }
  Stream& stream(StreamRole role) override { return streams_.of(role); }
  Stream& user_stream(StreamIndex index) override { return streams_.user(index); }
  ProcessGroup& group(GroupKind kind) override { return at(kind); }
  GraphCapture* graphs() override { return nullptr; }
  std::optional<std::string> poll_error() override;
  Journal* journal() override { return recording_.journal; }
  FaultPoint* faults() override { return recording_.faults; }

  void enter();  // a program starts; leave(): it has ended
  void leave();
  void abort(const std::string& reason);

 private:
  HostGroup& at(GroupKind kind) { return *groups_[static_cast<std::size_t>(kind)]; }

  int rank_;
  int world_size_;
  Device device_;
  RankObservers recording_;
  HostClock clock_;
  HostMemory memory_;
  HostStreams streams_;
  HostKernels kernels_;
  CpuOps ops_;
  std::vector<std::unique_ptr<HostGroup>> groups_;
};

}  // namespace zeroproof::host
