#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/runtime/cuda/copy_staging.h"
#include "engine/runtime/cuda/cuda_graph.h"
#include "engine/runtime/cuda/cuda_kernels.h"
#include "engine/runtime/cuda/cuda_memory.h"
#include "engine/runtime/cuda/cuda_ops.h"
#include "engine/runtime/cuda/cuda_stream.h"
#include "engine/runtime/cuda/nccl_group.h"
#include "engine/runtime/host/host_clock.h"
#include "engine/runtime/watchdog.h"
#include "zeroproof/engine/runtime/cuda/cuda_world.h"
#include "zeroproof/engine/runtime/runtime.h"

namespace zeroproof::cuda {

// One rank of a CudaWorld. A host that waits finds out what failed below, and what takes longer
// than the world's time-out: then its communicators are aborted. A watchdog does the same for calls
// of the driver that do not return.
class CudaRank final : public Runtime {
 public:
  CudaRank(const CudaWorldOptions& options, int rank, const std::shared_ptr<Gpu>& gpu);
  ~CudaRank() override;
  CudaRank(const CudaRank&) = delete;
  CudaRank& operator=(const CudaRank&) = delete;
  // By GroupKind.
  void join(host::GroupMembers members, std::shared_ptr<NcclClique> clique);

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  Device device() const override { return device_; }
  Clock& clock() override { return clock_; }
  Memory& memory() override { return memory_; }
  Kernels& kernels() override { return kernels_; }
  const Ops& ops() const override { return ops_; }
  Stream& stream(StreamRole role) override { return streams_.of(role); }
  Stream& user_stream(StreamIndex) override { return streams_.of(StreamRole::compute); }
  ProcessGroup& group(GroupKind kind) override { return *groups_[static_cast<std::size_t>(kind)]; }
  GraphCapture* graphs() override { return &graphs_; }
  std::optional<std::string> poll_error() override;
  Journal* journal() override { return recording_.journal; }
  FaultPoint* faults() override { return recording_.faults; }

  void enter();  // on the thread of its program, before it starts
  void leave();  // waits for all that is queued
  void abort(const std::string& reason);

 private:
  void check_progress(std::int64_t waited_ms);
  void end_wait(const std::string& what, Watchdog::Milliseconds age);

  int rank_;
  int world_size_;
  std::int64_t timeout_ms_;
  Device device_;
  bool leaves_out_collectives_;
  CudaCollectives collectives_;
  RankObservers recording_;
  std::shared_ptr<Gpu> gpu_;
  host::HostClock clock_;
  CudaMemory memory_;
  CopyStaging staging_;
  CudaStreams streams_;
  CudaKernels kernels_;
  CudaOps ops_;
  CudaGraphCapture graphs_;
  std::vector<std::unique_ptr<NcclGroup>> groups_;
  Watchdog watchdog_;  // of calls that check_progress() cannot see
};

}  // namespace zeroproof::cuda
