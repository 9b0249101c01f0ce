#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/schedule.h"
#include "sim/scheduler.h"
#include "zeroproof/internal/model/choice.h"

namespace zeroproof {

// A property that one execution falsified.
struct Falsified {
  std::uint32_t property = 0;  // the caller's index
  std::uint64_t events = 0;    // events up to and including the bad moment
  friend bool operator==(const Falsified&, const Falsified&) = default;
};

// What one complete execution showed.
struct Outcome {
  std::vector<Falsified> falsified;        // at most one entry a property
  std::optional<Fingerprint> final_state;  // counted as a state when given
  std::string order;                       // the order in words, kept for failing executions
};

// Runs the world once, from its beginning, as a function of the chooser only. ExecutionCut must
// pass through it. Any other exception ends the exploration and reaches its caller.
//
// With a scheduler that prunes (exhaustive), a fingerprint must cover everything that decides
// the rest of the execution *and* what is falsified in the end: the state of the monitors and
// the verdicts so far belong to it. Then a pruned state has shown all its verdicts already, and
// no failing order is lost. When states also determine the number of events before them, the
// shortest failing order is exact as well (tests/sim/explorer_test.cpp).
using RunFunction = std::function<Outcome(Chooser&)>;

struct Budget {
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t executions = kUnlimited;
  std::uint64_t steps = kUnlimited;  // choices over all executions
  bool stops_at_first_finding = false;
};

enum class StopRequest { none, time_over, interrupted };

enum class ExploreEnd {
  exhausted,      // the scheduler had no execution left to try
  budget,         // executions or steps ran out
  time_over,      // as the caller asked
  interrupted,    // as the caller asked
  first_finding,  // Budget::stops_at_first_finding
  diverged,       // nondeterminism or a schedule that does not fit; see `divergence`
};

struct ExploreProgress {
  std::uint64_t executions = 0;
  std::uint64_t steps = 0;
  std::uint64_t deepest = 0;   // choices of the longest execution
  std::uint64_t findings = 0;  // properties falsified
  SchedulerStats scheduler;
};

// The caller's side of a running exploration; both may be empty. There is no clock in here:
// limits of time are the caller's.
struct ExploreWatch {
  std::function<void(const ExploreProgress&)> on_progress;  // after every execution
  std::function<StopRequest()> should_stop;                 // also asked within long executions
};

struct FailingRun {
  Choices choices;
  std::uint64_t events = 0;     // up to and including the bad moment
  std::uint64_t execution = 0;  // 0 for the first
  std::string order;
};

struct FailingProperty {
  std::uint32_t property = 0;
  std::uint64_t failing_executions = 0;  // among those run
  FailingRun first;                      // in order of discovery
  FailingRun shortest;                   // fewest events, then least choices in dictionary order
};

struct ExploreResult {
  ExploreEnd end = ExploreEnd::exhausted;
  std::string divergence;                 // one line when diverged
  std::uint64_t executions = 0;           // runs of the function, cut ones included
  std::uint64_t complete_executions = 0;  // runs that reached their end
  ExploreProgress progress;               // the last one
  std::vector<FailingProperty> findings;  // by property
  bool has_covered_every_order() const { return progress.scheduler.has_exhausted; }
};

// Runs executions until the scheduler, the budget or the caller ends it.
ExploreResult explore(const RunFunction& run, Scheduler& scheduler, const Budget& budget,
                      const ExploreWatch& watch = {});

}  // namespace zeroproof
