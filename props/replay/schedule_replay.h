#pragma once

#include <optional>
#include <string>
#include <vector>

#include "props/exploration.h"
#include "sim/schedule.h"

namespace zeroproof {

// The schedule with what its run falsified written into its settings, so that a later replay can
// see whether it still does.
Schedule expecting(Schedule schedule, const std::vector<Verdict>& verdicts);

struct ScheduleReplayOptions {
  std::string policy;              // empty: the schedule's
  MakePolicy make_policy;          // makes that policy, where it is not in the catalogue
  std::optional<PolicyMode> mode;  // nullopt: the schedule's
};

// What one schedule showed when it ran again.
struct ScheduleReplay {
  std::string source;  // the file, or the schedule itself
  Schedule schedule;   // as it ran
  RecordedRun run;
  std::vector<std::string> falsified;                // property numbers
  std::optional<std::vector<std::string>> expected;  // absent: no comparison

  bool is_reproduced() const { return !expected || *expected == falsified; }
};

// Whether the word is a schedule, or names a file that starts as one.
bool is_schedule_word(const std::string& word);

// Runs the schedule that the word is or names. Under another policy or mode there is no
// expectation to compare with.
Result<ScheduleReplay> replay_schedule(const std::string& word,
                                       const ScheduleReplayOptions& options);

}  // namespace zeroproof
