#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/runtime/cuda/peers.h"
#include "engine/runtime/cuda/shared_segments.h"

namespace zeroproof {
class Job;
}

namespace zeroproof::cuda {

// NCCL_HOSTID, which NCCL takes for the name of a host, or the machine's own: ranks of hosts with
// different names share no memory. So one machine can stand for several.
std::string host_name();

// Which processes of a job reach the memory of each other's GPUs, and what this one has of theirs.
class HostPeers {
 public:
  // For all processes to call: each maps a segment of each other and reads it. Those that cannot
  // have NCCL, which is no error.
  HostPeers(Job& job, int ordinal);

  // Of this process's GPU; null: no other process reaches it.
  std::shared_ptr<SharedSegments> segments() const { return has_peers_ ? segments_ : nullptr; }
  // These ranks in parts that reach each other, in the order of their first ranks: each host's.
  std::vector<std::vector<int>> hosts_of(const std::vector<int>& ranks) const;
  // Whether each of these ranks reaches all others.
  bool reach_each_other(const std::vector<int>& ranks) const;

  // What a group of so many ranks shares: made by one of them, and opened by the others.
  static std::shared_ptr<SharedRegion> make_region(std::size_t ranks);
  static std::shared_ptr<SharedRegion> open_region(const std::string& place, std::size_t ranks);
  // This process's end of the group; `gpu` is its own, `rank` within the group.
  std::unique_ptr<Peers> peers(const std::vector<int>& ranks, int rank, std::shared_ptr<Gpu> gpu,
                               const std::shared_ptr<SharedRegion>& region) const;

 private:
  struct Greeting;
  Greeting greet();
  bool can_reach(int rank, const Greeting& of);

  int ordinal_;
  std::shared_ptr<SharedSegments> segments_;
  std::vector<std::shared_ptr<PeerSegments>> others_;  // by rank of the job; null: not reached
  bool has_peers_ = false;
  std::vector<std::string> reaches_;  // by rank: '1' for each rank that it reaches
};

}  // namespace zeroproof::cuda
