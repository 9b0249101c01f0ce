#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "props/train/case_runner.h"
#include "props/train/coverage.h"
#include "sim/explorer.h"
#include "sim/schedulers/pct.h"

namespace zeroproof::train {

struct EngineExplorationOptions {
  EngineCase engine_case;
  std::string scheduler = "random";  // see make_scheduler
  std::uint64_t seed = 0;
  Budget budget;
  bool runs_twice = false;  // every execution a second time; a difference is nondeterminism
  bool minimizes = true;
  // Execution i belongs to shard i % shards; those of a shard are dealt out to its workers alike.
  // More than one of either: scheduler random, whose executions are independent of each other.
  std::uint64_t workers = 1;  // threads; the report does not depend on them
  std::uint64_t shards = 1;
  std::uint64_t shard = 0;
};

// How far all workers of an exploration are.
struct EngineProgress {
  std::uint64_t executions = 0;
  std::uint64_t deepest = 0;
  std::uint64_t findings = 0;  // kinds
  std::uint64_t classes = 0;   // happens-before classes, of the first worker
  std::uint64_t own = 0;       // executions of the first worker
};

// One kind of finding of an exploration.
struct EngineFinding {
  CaseFinding finding;                   // of the minimised run
  std::uint64_t failing_executions = 0;  // of those explored
  std::uint64_t first_execution = 0;     // 0: the very first
  std::uint64_t events_before = 0;       // of the shortest failing run as it was found
  Schedule schedule;                     // of that run, with what it shows ("found")
  Schedule minimized;                    // equal to it without minimising
  std::uint64_t events = 0;              // of the minimised run, up to the bad moment
  std::uint64_t decisions = 0;           // choices of the minimised run other than the first option
  std::uint64_t runs = 0;                // that minimising took
  bool is_minimal = false;               // not one of its decisions can be dropped
};

struct EngineExplorationReport {
  EngineExplorationOptions options;
  ExploreEnd end = ExploreEnd::exhausted;
  std::string divergence;  // one line when diverged
  std::string refusal;  // "manual_backward_unsupported": what every execution was refused with, as
                        // documented
  std::uint64_t executions = 0;
  std::uint64_t events = 0;   // decisions and seam calls
  std::uint64_t choices = 0;  // with two or more options
  std::uint64_t deepest = 0;  // most choices of one execution
  std::uint64_t results = 0;  // that differ in a number, or in what was found
  std::uint64_t ends = 0;     // that differ in what a rank has been through, too
  std::uint64_t classes = 0;  // happens-before classes (SimWorld::order_class)
  bool has_exhausted = false;
  std::optional<std::uint64_t> states;        // where the scheduler knows
  std::optional<std::uint64_t> transitions;   // the same
  std::optional<PctCertificate> certificate;  // of pct
  std::vector<SiteCount> sites;               // by name
  std::vector<SometimesCount> sometimes;      // by name
  std::vector<EngineFinding> findings;        // in order of discovery
};

// The caller's side; both may be empty. `should_stop` is asked by all workers at once, the other
// only by the calling thread.
struct EngineWatch {
  std::function<void(const EngineProgress&)> on_progress;
  std::function<StopRequest()> should_stop;
};

// Runs the case in every order that the scheduler picks. Errors: code usage, for a backward that
// the scenario does not have, the scheduler, or several workers with one that cannot be dealt out;
// unreadable for its schedule file.
Result<EngineExplorationReport> explore_engine(const EngineExplorationOptions& options,
                                               const EngineWatch& watch = {});

// The schedule of a case: cell, choices, and the kinds that its run shows under "found".
Schedule schedule_of(const EngineCase& engine_case, std::uint64_t seed, Choices choices,
                     const std::vector<CaseFinding>& found);

// The kinds in one word: "deadlock+P46", or "none".
std::string found_word(const std::vector<CaseFinding>& found);

}  // namespace zeroproof::train
