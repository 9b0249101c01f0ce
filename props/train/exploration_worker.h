#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "props/train/coverage.h"
#include "props/train/dealt_scheduler.h"
#include "props/train/engine_exploration.h"

namespace zeroproof::train {

// One kind of finding as the executions of a deal showed it.
struct FoundKind {
  std::uint64_t failing_executions = 0;
  std::uint64_t first_execution = 0;  // numbers count all executions of the exploration
  FailingRun shortest;
};

// What the executions of one deal came to, or of several together.
struct ExplorationPart {
  ExploreEnd end = ExploreEnd::exhausted;
  std::string divergence;
  std::string refusal;
  std::uint64_t executions = 0;
  std::uint64_t events = 0;
  std::uint64_t choices = 0;
  std::uint64_t deepest = 0;
  SchedulerStats scheduler;
  std::optional<PctCertificate> certificate;
  Coverage coverage;
  std::set<std::string> required;          // conditions
  std::map<std::string, FoundKind> found;  // by kind

  // The same in whatever order parts are added, but for what only one scheduler knows.
  void add(const ExplorationPart& other);
};

// Runs a case as one deal of an exploration has it. Used by one thread.
class ExplorationWorker {
 public:
  ExplorationWorker(const EngineExplorationOptions& options, CaseRunner runner, const Deal& deal);

  ExplorationPart run(Scheduler& scheduler, const ExploreWatch& watch);
  std::uint64_t classes() const { return part_.coverage.classes(); }

 private:
  Outcome execute(Chooser& chooser);
  std::uint32_t index_of(const std::string& kind);
  std::uint64_t number(std::uint64_t own) const;
  Budget budget() const;
  void summarize(const ExploreResult& result);

  const EngineExplorationOptions& options_;
  CaseRunner runner_;
  Deal deal_;
  std::vector<std::string> kinds_;
  ExplorationPart part_;
};

}  // namespace zeroproof::train
