#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "props/hunt/case_result.h"
#include "props/mutation/fault.h"
#include "props/train/case_spec.h"
#include "props/train/cell_run.h"
#include "props/train/scenario.h"
#include "zeroproof/internal/model/choice.h"

namespace zeroproof::mutation {

using hunt::CaseResult;
using hunt::Falsified;

// One case under all judges: numbers against the unsharded baseline, what the simulated world
// sees, races of streams, and in a run of its own the properties of every rank's events.
class CaseRun {
 public:
  // Copies the spec; the baseline runs once, when it is first needed. Properties whose numbers are
  // in `without` are not judged.
  explicit CaseRun(const train::CaseSpec& spec, std::set<std::string> without = {});
  CaseRun(const CaseRun&) = delete;
  CaseRun& operator=(const CaseRun&) = delete;

  const train::CaseSpec& spec() const { return spec_; }

  using Depth = hunt::Depth;
  // With the fault's fault; null: the unmutated engine. Choices come from `choosers(run)`, a fresh
  // one for each of the two runs.
  template <class ChooserOf>
  CaseResult run(const Fault* fault, Depth depth, ChooserOf chooser_of) {
    CaseResult result;
    judge_values(fault, chooser_of(0), result);
    if (depth == Depth::all || result.falsified.empty()) judge_events(fault, chooser_of(1), result);
    return result;
  }

  void judge_values(const Fault* fault, Chooser& chooser, CaseResult& result);
  void judge_events(const Fault* fault, Chooser& chooser, CaseResult& result);

 private:
  train::TrainCell cell_with(const Fault* fault) const;
  const std::vector<train::WindowValues>& baseline();
  bool run_elsewhere(const train::TrainCell& cell, CaseResult& result) const;
  void judge_rest(const train::CellRun& run, CaseResult& result) const;
  void judge_memory(const train::CellRun& run, CaseResult& result) const;
  void compare_values(const train::CellRun& run, CaseResult& result);
  void compare_records(const train::CellRun& run, std::size_t rank, CaseResult& result);
  void add_values(const Fault* fault, Chooser& chooser, CaseResult& result);
  void add_events(const Fault* fault, Chooser& chooser, CaseResult& result);
  void drop_removed(CaseResult& result) const;

  train::CaseSpec spec_;
  std::set<std::string> without_;
  train::TrainScenario scenario_;
  train::TrainCell cell_;
  std::optional<std::vector<train::WindowValues>> baseline_;
};

}  // namespace zeroproof::mutation
