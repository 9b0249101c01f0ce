#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "zeroproof/engine/runtime/runtime.h"
#include "zeroproof/internal/engine/runtime/access.h"
#include "zeroproof/internal/engine/runtime/host/group_layout.h"

namespace zeroproof {

class Job;

namespace host {
class HostRuntime;
class Rendezvous;
}  // namespace host

// The observer of one rank; null for no observer. Called on that rank's thread.
struct RankObservers {
  Journal* journal = nullptr;
  FaultPoint* faults = nullptr;
  AccessObserver* accesses = nullptr;
};

struct HostWorldOptions {
  int world_size = 1;
  ParallelDegrees degrees = {};
  std::int64_t timeout_ms = 60'000;           // of a rank that waits for others in a collective
  Device device = {};                         // where buffers count as living, on every rank
  bool is_poisoned = true;                    // what the contract calls garbage is NaN, else zeros
  std::int64_t capacity_bytes = INT64_MAX;    // of each rank's device, and of its host memory
  std::vector<RankObservers> observers = {};  // empty, or one for each rank; must outlive the world
  std::shared_ptr<Job> job = {};              // null: every rank is a thread of this process
};

// Ranks as threads of this process, with collectives through shared memory: every interface of
// the seam, work done when it is queued. Bits do not depend on the threads' order. Or as the
// processes of a job, of which this one has one rank, with collectives through the job's store:
// slow, the same bits, and for whatever needs no GPU.
class HostWorld {
 public:
  using Program = std::function<void(Runtime& runtime)>;

  // UsageError for degrees that do not divide, or observers or a job of another number of ranks.
  explicit HostWorld(const HostWorldOptions& options);
  ~HostWorld();
  HostWorld(const HostWorld&) = delete;
  HostWorld& operator=(const HostWorld&) = delete;

  int world_size() const { return static_cast<int>(runtimes_.size()); }
  // For the thread of its rank; or for any one thread while no rank runs. UsageError for a rank of
  // another process.
  Runtime& runtime(int rank);

  // Runs `program` once a rank, each on its own thread, and waits for all; a world of one runs on
  // this thread. When one throws, the groups of all are aborted, for good: no rank hangs. Rethrows
  // what the lowest rank threw, an abort only without another error.
  void run(const Program& program);
  // The same, but returns what each rank threw, null for no error; and for ranks of others.
  std::vector<std::exception_ptr> try_run(const Program& program);

 private:
  void make_groups(GroupKind kind, const HostWorldOptions& options);
  std::shared_ptr<host::Rendezvous> rendezvous_of(GroupKind kind, const std::vector<int>& ranks,
                                                  const HostWorldOptions& options) const;
  std::exception_ptr run_rank(const Program& program, int rank);
  void abort_all(int rank, const std::exception_ptr& error);

  std::vector<std::unique_ptr<host::HostRuntime>> runtimes_;  // by rank; null: of another process
  std::shared_ptr<Job> job_;
};

}  // namespace zeroproof
