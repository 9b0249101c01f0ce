#pragma once

#include <functional>
#include <string>
#include <vector>

#include "props/exploration.h"
#include "props/replay/schedule_replay.h"
#include "props/report/located_finding.h"
#include "props/report/picture/picture.h"

namespace zeroproof {

// Pictures of what the verbs look at.

struct TracePictureOptions {
  std::function<bool(const HookEvent&)> shows;  // empty: every event
  std::size_t events_max = 1'000'000;           // a page of more would not open
};

// Traces, one below the other: the ranks of a run, or several runs. `findings` are marked where
// their file, rank and clock are. A trace is shown up to its first fault. Errors: one that cannot
// be opened; code usage when there are too many events.
Result<Picture> trace_picture(const std::vector<std::string>& paths,
                              const LocatedFindings& findings, const TracePictureOptions& options);

// One run of a schedule, each falsified property marked. `reproduce` as in LocatedFinding.
Picture run_picture(const ScheduleReplay& replay, const std::string& reproduce);

// The minimised run of a finding.
Picture finding_picture(const ExplorationReport& report, const ExplorationFinding& finding);

}  // namespace zeroproof
