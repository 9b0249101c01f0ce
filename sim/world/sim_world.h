#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/world/finding.h"
#include "sim/world/history.h"
#include "sim/world/seam_faults.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/engine/runtime/runtime.h"
#include "zeroproof/internal/model/choice.h"

namespace zeroproof {

namespace sim {
class RankTask;
}

// Where somebody else may go on while a rank could.
enum class Preemption : std::uint8_t {
  when_blocked,   // only where the rank has to wait
  at_every_call,  // before every call that others may see
  // As when_blocked, and queued work runs as soon as it can: ranks are all that is chosen among.
  // Enough where no two streams race and no memory is used after it was freed (P46 to P48, which
  // vector clocks see in any order), and none asks with query() how far a stream is: then running
  // queued work commutes with all that others can do beside it.
  of_ranks,
};

struct SimWorldOptions {
  int world_size = 1;
  ParallelDegrees degrees;
  Device device;
  bool is_poisoned = true;                  // what the contract calls garbage is NaN, else zeros
  std::int64_t capacity_bytes = INT64_MAX;  // of each rank's device, and of its host memory
  std::vector<RankObservers> observers;     // empty, or one for each rank; must outlive the world
  sim::SeamFaults* faults = nullptr;        // null: none; must outlive the world
  Fingerprint origin;  // of what the programs find, where not all worlds begin alike
  Preemption preemption = Preemption::when_blocked;
  // Work on the compute stream runs late as well, as on a GPU. The model's own arithmetic stands in
  // line there; the rank waits for it.
  bool has_late_compute = false;
  // A fault where false: new memory is poisoned on the compute stream, and another stream's first
  // use does not wait for that.
  bool waits_before_first_use = true;
  std::uint64_t steps_max = 100'000'000;  // of one run; then it makes no progress
};

// Ranks as fibers of one thread; who goes on, and which queued work completes next, is the
// chooser's decision at site "world.next" (options "r0" for a rank, "r0.reduction" for a stream).
// A run is a function of the program and the decisions alone. Work on the reduction, all_gather
// and offload streams runs late, or early, as the chooser says; what the model computes on runs in
// step with its rank, unless the compute stream is to be late too.
class SimWorld {
 public:
  using Program = std::function<void(Runtime& runtime)>;

  // `chooser` must outlive it. UsageError as in HostWorld.
  SimWorld(const SimWorldOptions& options, Chooser& chooser);
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  int world_size() const { return static_cast<int>(ranks_.size()); }
  Runtime& runtime(int rank);
  // For choices within the rank (Autograd::set_scheduling): the same chooser, with fingerprints of
  // the whole world.
  Chooser& chooser(int rank);

  // Runs `program` once a rank, in turns, until all have ended. As HostWorld::run: when one throws,
  // the groups of all are aborted. ExecutionCut passes through, after all ranks have unwound.
  void run(const Program& program);
  std::vector<std::exception_ptr> try_run(const Program& program);

  const std::vector<sim::Finding>& findings() const { return findings_; }
  std::uint64_t steps() const { return steps_; }  // decisions and seam calls so far
  // Of the ranks' histories and what stands in the queues. Equal ones have equal futures where no
  // data race is reported.
  Fingerprint fingerprint() const;
  // Of the order in which each rank's program and streams went on, and what was chosen within it.
  // What different ranks do commutes unless a collective orders it, and those are in the programs:
  // equal ones are one happens-before class.
  Fingerprint order_class() const;
  // Of everything that happened, in its order: decisions, seam calls, what they returned. Equal in
  // every build for equal programs and decisions.
  Fingerprint trace_hash() const { return trace_.value(); }

 private:
  friend class sim::RankTask;

  void make_groups(GroupKind kind, const SimWorldOptions& options);
  void drive();
  bool turn();
  void collect_agents();
  void keep_last_agent();
  void end_stuck(sim::FindingKind kind, const std::string& text);
  void abort_all(const std::string& reason);
  void finish(sim::RankTask& task);
  void report(sim::Finding finding);

  // One that can go on: the rank itself, or one of its streams.
  struct Agent {
    sim::RankTask* task = nullptr;
    std::size_t stream = 0;
    bool is_host = true;
  };

  Chooser& chooser_;
  sim::SeamFaults* faults_;
  Fingerprint origin_;
  Preemption preemption_;
  std::uint64_t steps_max_;
  std::uint64_t steps_ = 0;
  sim::History trace_;
  std::vector<std::unique_ptr<sim::RankTask>> ranks_;
  std::vector<Agent> agents_;
  std::vector<std::string_view> names_;  // of agents_
  std::vector<sim::Finding> findings_;
  bool is_cut_ = false;
};

}  // namespace zeroproof
