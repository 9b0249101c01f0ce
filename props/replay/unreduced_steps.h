#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/rule_findings.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// A step that used gradients which no collective had carried.
struct UnreducedStep {
  HookEvent step;
  std::vector<std::string> params;
  std::string cause;  // why, as far as the events show
  std::string look_at;
  std::uint64_t backward_lc = 0;  // end of the last backward
  bool is_unsynced = false;       // that one ran under no_sync
};

// Collects such steps and reports them at the end: a job that averages its parameters now and then
// (local SGD) steps on gradients of one rank on purpose.
class UnreducedSteps {
 public:
  void add(UnreducedStep step, const RuleFindings& story);

  // The last step stood before the backward of its own closure: it used what came later.
  void withdraw_last();

  // Parameters were averaged, and training went on.
  void note_averaging() { ++averagings_; }
  bool is_empty() const { return kinds_[0].count + kinds_[1].count == 0; }

  // `is_local`: the job says that it averages parameters.
  void finish(bool is_local, std::uint64_t steps, std::vector<Diagnosis>& out);

 private:
  struct Kind {
    UnreducedStep first;
    std::vector<DiagnosisMoment> order;
    std::uint64_t count = 0;
  };

  static Diagnosis unsynced(const Kind& kind);
  static Diagnosis unreduced(const Kind& kind);
  Diagnosis local(std::uint64_t steps) const;

  Kind kinds_[2];  // without reduction, under no_sync
  std::size_t last_ = 0;
  std::uint64_t averagings_ = 0;
};

}  // namespace zeroproof
