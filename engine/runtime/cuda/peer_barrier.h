#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/runtime/cuda/gpu.h"

namespace zeroproof::cuda {

// Queues of several GPUs wait for each other by flags: stream memory operations write the peers'
// flags and wait for the own ones, without a kernel. Each role's queues have flags of their own. A
// meeting leaves its flags as it found them, so a captured one can be replayed. The flags lie in
// pinned memory of the host, which processes may share: the host can end a wait without a call of
// CUDA's, which might wait too.
class PeerBarrier {
 public:
  // Consecutive meetings of one role have different numbers below this one. Otherwise a flag of the
  // second could come before the first is read.
  static constexpr int kNumbers = 3;

  // Whether the driver has what it takes.
  static bool is_available();
  // Zeros in memory that every GPU of the barrier writes to, and what frees it.
  using Flags = std::unique_ptr<std::uint32_t, std::function<void(std::uint32_t*)>>;
  static std::size_t flag_count(std::size_t ranks);
  // Of a barrier whose ranks are all of this process. Throws RuntimeFault.
  static Flags own_flags(std::size_t ranks);

  // By rank; null: the GPU of another process. Throws RuntimeFault.
  PeerBarrier(const std::vector<std::shared_ptr<Gpu>>& gpus, Flags flags);
  // After a release, it waits until the GPUs are idle.
  ~PeerBarrier();
  PeerBarrier(const PeerBarrier&) = delete;
  PeerBarrier& operator=(const PeerBarrier&) = delete;

  // Later work on `queue` runs after the work that every rank has queued before this meeting.
  // GroupAborted after a release.
  void meet(int rank, cudaStream_t queue, int number);
  // The ranks whose queues have not come to a meeting in which others wait now. A look without
  // synchronisation, for messages; empty where no rank waits, and after a release.
  std::vector<int> absent() const;
  // Ends every wait of this process's ranks from now on, also of replays. Once.
  void release();

 private:
  struct Member {
    std::shared_ptr<Gpu> gpu;  // null: of another process
    std::mutex calls;
  };

  std::size_t place(int owner, std::size_t role, int number, int writer) const;
  bool waits(int rank) const;
  void set_until(const std::stop_token& stop);
  bool are_idle() const;

  std::deque<Member> members_;             // by rank
  Flags flags_;                            // by owner, role, number and the rank that writes
  std::uint32_t* device_flags_ = nullptr;  // the same, as GPUs see them
  bool is_released_ = false;               // under the mutexes of all members
  std::jthread setter_;
};

}  // namespace zeroproof::cuda
