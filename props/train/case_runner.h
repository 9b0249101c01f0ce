#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "props/train/engine_case.h"
#include "props/train/fault_choices.h"
#include "props/train/kept_checkpoints.h"
#include "props/train/scenario.h"
#include "props/train/train_run.h"

namespace zeroproof::train {

// Something that one execution of a case showed and no execution may.
struct CaseFinding {
  // "deadlock" and so on of the world; "backward_of_invalid_loss" for an error of the engine that
  // is not documented there, "error" for another; "different" from the baseline, "ranks_differ",
  // "host_differs"; or the number of a property. Findings of one kind count as the same.
  std::string kind;
  std::string text;
  int rank = -1;           // -1: several, or unknown
  std::uint64_t step = 0;  // of the world: the bad moment, or the end
};

// What one execution came to.
struct CaseRun {
  CellStatus status = CellStatus::equal;
  std::string refusal;                // of one that was refused as documented
  std::vector<CaseFinding> findings;  // one a kind
  std::uint64_t steps = 0;            // decisions and seam calls
  Fingerprint result;                 // of all numbers of all ranks, and of the findings
  Fingerprint state;                  // the same with the histories of the ranks
  std::vector<Choices> nodes;         // see CellRun
  Fingerprint order_class;            // see SimWorld
  std::set<std::string> reached;      // conditions of the scenario, faults and recoveries
};

// The finding of that kind; null when there is none.
const CaseFinding* find_kind(const CaseRun& run, const std::string& kind);

// Runs a case as often as it is asked to, and judges every run. The baseline runs once.
class CaseRunner {
 public:
  // Code usage when the scenario has no such backward.
  static Result<CaseRunner> create(const EngineCase& engine_case);

  // ExecutionCut passes through.
  CaseRun run(Chooser& chooser);

  const EngineCase& engine_case() const { return case_; }
  // Conditions that some execution has to reach, as far as a run has shown.
  std::set<std::string> required() const;

 private:
  CaseRunner(const EngineCase& engine_case, const TrainScenario& scenario)
      : case_(engine_case), scenario_(&scenario) {}

  CaseRun run_beside_host(Chooser& chooser);
  CaseRun run_under_faults(Chooser& chooser);
  CaseRun conclude(const CellRun& run, TrainReport report, CaseFinding also);

  EngineCase case_;
  const TrainScenario* scenario_;  // static
  std::optional<std::vector<WindowValues>> baseline_;
  std::optional<FaultChoices> faults_;
  LoadedStates loaded_;
};

}  // namespace zeroproof::train
