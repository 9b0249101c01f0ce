#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/runtime/cuda/gpu.h"
#include "engine/runtime/cuda/host_peers.h"
#include "engine/runtime/cuda/nccl_clique.h"
#include "zeroproof/internal/engine/runtime/process_group.h"

namespace zeroproof {
class Job;
}

namespace zeroproof::cuda {

// What Gpus holds.
class GpuSet {
 public:
  explicit GpuSet(int count);
  // The GPU of this number for the rank that this process is.
  GpuSet(std::shared_ptr<Job> job, int ordinal);
  ~GpuSet();
  GpuSet(const GpuSet&) = delete;
  GpuSet& operator=(const GpuSet&) = delete;

  // Held by the world that uses the GPUs: others wait.
  std::mutex& turn() { return turn_; }
  // By rank; null: of another process.
  const std::vector<std::shared_ptr<Gpu>>& gpus() const { return gpus_; }
  const std::shared_ptr<Job>& job() const { return job_; }  // null: all are of this process
  // Whether each GPU reaches the memory of all others.
  bool reach_each_other() const;
  // Of this process's first rank.
  Gpu& first() const;
  // Between the GPUs of these ranks, of which this process has one or all; made on first use, and
  // again after a failure. With other processes: by all of these ranks, in one order.
  std::shared_ptr<NcclClique> clique(GroupKind kind, const std::vector<int>& ranks);

 private:
  class Cliques;
  using CliqueKey = std::pair<GroupKind, std::vector<int>>;
  std::shared_ptr<NcclClique> make_clique(const CliqueKey& of);
  std::shared_ptr<NcclClique> join_clique(const CliqueKey& of);
  NcclClique::Shared share_memory(const CliqueKey& of, const std::string& key);
  std::unique_ptr<Peers> join_peers(const std::vector<int>& ranks, const std::string& key);

  std::mutex turn_;
  std::shared_ptr<Job> job_;
  std::unique_ptr<HostPeers> host_peers_;  // null: without a job
  std::vector<std::shared_ptr<Gpu>> gpus_;
  std::shared_ptr<Cliques> cliques_;  // also of who aborts them when a process fails
  std::map<CliqueKey, int> made_;     // how often
  std::shared_ptr<void> failure_handle_;
};

}  // namespace zeroproof::cuda
