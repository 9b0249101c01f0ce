#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/choice.h"
#include "props/museum/entry.h"
#include "props/property.h"
#include "props/train/case_spec.h"
#include "props/train/cell_run.h"
#include "props/train/scenario.h"

namespace zeroproof::museum {

// A property that an execution falsified.
struct Falsified {
  const Property* property = nullptr;  // static
  std::string text;
  int rank = -1;  // -1: several
};

struct TrialResult {
  std::vector<Falsified> falsified;  // one a property, in the order in which they were seen
  std::uint64_t executions = 0;      // runs of the engines
  std::uint64_t events = 0;          // decisions and seam calls of the last of them

  // The first of `numbers` ("P26 R7") that is falsified, in their order; of no numbers, the first
  // of all. Null for none.
  const Falsified* find(std::string_view numbers) const;
};

// One case under all judges: numbers against the unsharded baseline, what the simulated world
// sees, races of streams, and in a run of its own the properties of every rank's events.
class Trial {
 public:
  // Copies the spec; the baseline runs once, when it is first needed. Properties whose numbers are
  // in `without` are not judged.
  explicit Trial(const train::CaseSpec& spec, std::set<std::string> without = {});
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  const train::CaseSpec& spec() const { return spec_; }

  enum class Depth : std::uint8_t {
    first,  // the second run only where the first falsified nothing
    all,    // both
  };
  // With the entry's fault; null: the healthy engine. Choices come from `choosers(run)`, a fresh
  // one for each of the two runs.
  template <class ChooserOf>
  TrialResult run(const Entry* entry, Depth depth, ChooserOf chooser_of) {
    TrialResult result;
    judge_values(entry, chooser_of(0), result);
    if (depth == Depth::all || result.falsified.empty()) judge_events(entry, chooser_of(1), result);
    return result;
  }

  void judge_values(const Entry* entry, Chooser& chooser, TrialResult& result);
  void judge_events(const Entry* entry, Chooser& chooser, TrialResult& result);

 private:
  train::TrainCell cell_with(const Entry* entry) const;
  const std::vector<train::WindowValues>& baseline();
  bool run_elsewhere(const train::TrainCell& cell, TrialResult& result) const;
  void judge_rest(const train::CellRun& run, TrialResult& result) const;
  void judge_memory(const train::CellRun& run, TrialResult& result) const;
  void compare_values(const train::CellRun& run, TrialResult& result);
  void compare_records(const train::CellRun& run, std::size_t rank, TrialResult& result);
  void add_values(const Entry* entry, Chooser& chooser, TrialResult& result);
  void add_events(const Entry* entry, Chooser& chooser, TrialResult& result);
  void drop_removed(TrialResult& result) const;

  train::CaseSpec spec_;
  std::set<std::string> without_;
  train::TrainScenario scenario_;
  train::TrainCell cell_;
  std::optional<std::vector<train::WindowValues>> baseline_;
};

}  // namespace zeroproof::museum
