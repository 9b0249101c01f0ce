#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "props/hunt/case_result.h"
#include "props/hunt/overlap_judge.h"
#include "props/hunt/program_judge.h"
#include "props/interpreter/program_run.h"
#include "props/reference/findings.h"
#include "props/replay/properties_level.h"

namespace zeroproof::hunt {

// One program under all judges: what its ranks see against the unsharded reference, what the
// simulated world sees, races of streams; in a run of its own the properties of every rank's
// events and the reference walker beside them; and in another one what a relation says.
class ProgramCase {
 public:
  explicit ProgramCase(std::unique_ptr<const program::RunnableProgram> runnable);

  // A program that the reference runs, too. Errors: as Contract::of; or the reference refuses it.
  static Result<std::unique_ptr<ProgramCase>> make(const program::Program& program);

  const program::RunnableProgram& runnable() const { return *runnable_; }
  // What ranks see of each world; runs once. Throws where the program is none for the reference.
  const std::vector<std::vector<program::Observations>>& reference();

  // The relations that speak of it; asked once.
  const std::vector<const relations::Relation*>& relations();

  // One judge alone. A relation runs both programs, one after the other.
  CaseResult judge(const ProgramJudge& judge, const program::EngineVariant& variant,
                   Chooser& chooser);

  // Returns what its ranks saw.
  program::ProgramRun judge_values(const program::EngineVariant& variant, Chooser& chooser,
                                   CaseResult& result);
  void judge_events(const program::EngineVariant& variant, Chooser& chooser, CaseResult& result);
  // Of the walkers in the last judge_events().
  const reference::Coverage& coverage() const { return coverage_; }
  // Runs the relation's other program beside a run of judge_values of the same engines.
  void judge_relation(const relations::Relation& relation, const program::ProgramRun& run,
                      const program::EngineVariant& variant, Chooser& chooser, CaseResult& result);

  // The names of the checkers that had something to judge in some run; static.
  const std::set<std::string_view>& active() const { return active_; }

 private:
  void compare(const program::SegmentRun& run, std::size_t segment, CaseResult& result);
  void note(std::span<const program::Observations> reference);
  void note(const PropertiesReport& report);
  void note(const reference::Coverage& coverage);

  std::unique_ptr<const program::RunnableProgram> runnable_;
  OverlapRules overlap_;
  std::optional<std::vector<std::vector<program::Observations>>> reference_;
  std::optional<std::vector<const relations::Relation*>> relations_;
  reference::Coverage coverage_;
  std::set<std::string_view> active_;
};

}  // namespace zeroproof::hunt
