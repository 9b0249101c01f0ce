#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "props/hunt/case_result.h"
#include "props/interpreter/program_run.h"
#include "props/reference/findings.h"

namespace zeroproof::hunt {

// One program under all judges: what its ranks see against the unsharded reference, what the
// simulated world sees, races of streams, and in a run of its own the properties of every rank's
// events and the reference walker beside them.
class ProgramCase {
 public:
  explicit ProgramCase(std::unique_ptr<const program::RunnableProgram> runnable)
      : runnable_(std::move(runnable)) {}

  const program::RunnableProgram& runnable() const { return *runnable_; }
  // What ranks see of each world; runs once. Throws where the program is none for the reference.
  const std::vector<std::vector<program::Observations>>& reference();

  // Choices come from `chooser_of(run)`, a fresh one for each of the two runs.
  template <class ChooserOf>
  CaseResult run(const program::EngineVariant& variant, Depth depth, ChooserOf chooser_of) {
    CaseResult result;
    judge_values(variant, chooser_of(0), result);
    if (depth == Depth::all || result.falsified.empty())
      judge_events(variant, chooser_of(1), result);
    return result;
  }

  void judge_values(const program::EngineVariant& variant, Chooser& chooser, CaseResult& result);
  void judge_events(const program::EngineVariant& variant, Chooser& chooser, CaseResult& result);
  // Of the walkers in the last judge_events().
  const reference::Coverage& coverage() const { return coverage_; }

 private:
  void compare(const program::SegmentRun& run, std::size_t segment, CaseResult& result);

  std::unique_ptr<const program::RunnableProgram> runnable_;
  std::optional<std::vector<std::vector<program::Observations>>> reference_;
  reference::Coverage coverage_;
};

}  // namespace zeroproof::hunt
