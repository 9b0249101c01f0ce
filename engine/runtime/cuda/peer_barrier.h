#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/runtime/cuda/gpu.h"

namespace zeroproof::cuda {

// Queues of several GPUs wait for each other by flags in the GPUs' memory: stream memory operations
// write the peers' flags and wait for the own ones, without a kernel. Each role's queues have flags
// of their own. A meeting leaves its flags as it found them, so a captured one can be replayed.
class PeerBarrier {
 public:
  // Consecutive meetings of one role have different numbers below this one. Otherwise a flag of the
  // second could come before the first is read.
  static constexpr int kNumbers = 3;

  // Whether the driver has what it takes.
  static bool is_available();
  // GPUs that reach each other's memory. Throws RuntimeFault.
  explicit PeerBarrier(std::vector<std::shared_ptr<Gpu>> gpus);
  ~PeerBarrier();
  PeerBarrier(const PeerBarrier&) = delete;
  PeerBarrier& operator=(const PeerBarrier&) = delete;

  // Later work on `queue` runs after the work that every rank has queued before this meeting.
  // GroupAborted after a release.
  void meet(int rank, cudaStream_t queue, int number);
  // Ends every wait, present and captured, until the GPUs have nothing more to do. Once.
  void release();

 private:
  struct Member {
    std::shared_ptr<Gpu> gpu;
    std::uint32_t* flags = nullptr;  // by role, number and the rank that writes
    std::mutex calls;
  };

  std::uint32_t* flag(int owner, std::size_t role, int number, int writer);
  void release(Member& member) const;
  std::size_t flag_count() const;

  std::deque<Member> members_;  // by rank
  bool is_released_ = false;    // under the mutexes of all members
};

}  // namespace zeroproof::cuda
