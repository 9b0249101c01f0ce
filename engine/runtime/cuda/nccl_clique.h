#pragma once

#include <nccl.h>

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/runtime/cuda/peers.h"

namespace zeroproof {
class Job;
}

namespace zeroproof::cuda {

// How many multiprocessors a collective may take: what runs beside computation leaves it so many
// that its matrix products, of a multiple of 128 blocks as a rule, still are there all at once.
// `between`: all, of a group on several hosts; see NcclClique::Hosts.
enum class NcclChannels : std::uint8_t { all, limited, between };

// The NCCL communicators of a group that this process has, by rank: between its GPUs, or one with
// other processes. NCCL ends communicators of one process together or not at all, so a clique is
// ended as a whole. Thread-safe, but a communicator itself is for the thread of its rank.
class NcclClique {
 public:
  // Of these GPUs, in the order of their ranks. Throws RuntimeFault.
  explicit NcclClique(const std::vector<std::shared_ptr<Gpu>>& gpus);
  // Of this GPU with those of other processes; `ids` are the same on all. Throws RuntimeFault, also
  // where a process of the job fails meanwhile, or it takes longer than the job's time-out.
  struct Seat {
    int rank = 0;  // within the group
    int size = 1;
    int ordinal = 0;
  };
  using Ids = std::array<ncclUniqueId, 2>;  // by NcclChannels
  // What this process has of a group on several hosts with as many of its ranks each.
  struct Hosts {
    struct Place {
      int host = 0;
      int rank = 0;  // on it
    };
    std::vector<Place> places;  // by rank of the group
    Place own;
    int local_size = 1;
    std::unique_ptr<Peers> local;         // of this host's ranks
    std::shared_ptr<NcclClique> between;  // of the ranks of this number on their hosts, by host
  };
  struct Shared {
    std::unique_ptr<Peers> peers;  // of all ranks
    std::unique_ptr<Hosts> hosts;  // where there are several
  };
  NcclClique(const Seat& seat, const Ids& ids, const Job& job, Shared shared);
  ~NcclClique();
  NcclClique(const NcclClique&) = delete;
  NcclClique& operator=(const NcclClique&) = delete;

  // A call of this rank's thread on its communicator, which no other thread ends meanwhile. Throws
  // RuntimeFault for what NCCL refuses; GroupAborted after an abort, without the call.
  void call(int rank, NcclChannels lanes, const std::function<ncclResult_t(ncclComm_t)>& nccl);
  // Null: GPUs that do not reach each other's memory.
  Peers* peers() { return peers_.get(); }
  // Null: GPUs of one host, or hosts with different numbers of them.
  Hosts* hosts() { return hosts_.get(); }
  // What NCCL met on this rank since its last call, or the reason of an abort; none while it works.
  std::optional<std::string> failure(int rank);
  bool is_aborted() const { return is_aborted_; }
  bool is_dead();
  // Ends what the kernels of all ranks do, their meetings, and the communicators (ncclCommAbort).
  // Once; also while a rank is inside a call of NCCL: only this ends one that waits for a peer.
  // Returns in time; communicators that NCCL does not end by then stay allocated.
  void abort(const std::string& reason);

 private:
  struct Member {
    int ordinal = 0;
    ncclComm_t communicator = nullptr;
    ncclComm_t narrow = nullptr;  // of NcclChannels::limited
    std::timed_mutex calls;       // held while the rank's thread is inside NCCL
  };

  using Members = std::deque<Member>;
  static void end_one(Member& member, ncclResult_t (*ends)(ncclComm_t));
  bool end(ncclResult_t (*ends)(ncclComm_t));

  std::unique_ptr<Peers> peers_;
  std::unique_ptr<Hosts> hosts_;
  // By rank; without a communicator: of another process. Shared with threads that NCCL keeps.
  std::shared_ptr<Members> members_ = std::make_shared<Members>();
  std::mutex mutex_;
  std::atomic<bool> is_aborted_ = false;
  std::string reason_;  // written before is_aborted_
};

}  // namespace zeroproof::cuda
