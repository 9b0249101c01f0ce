#pragma once

#include <string>
#include <vector>

#include "sim/schedule.h"
#include "zeroproof/model/result.h"

namespace zeroproof::train {

// Runs a schedule of the engine again in the simulated world, as replay_engine() does, and writes
// what its ranks do: one hooktrace file a rank, named after `path` as rank_path() says. Returns
// their paths. Errors: as of case_of(); code cannot_run for a schedule with faults, whose runs are
// several; code unreadable when the schedule does not fit.
Result<std::vector<std::string>> write_schedule_traces(const Schedule& schedule,
                                                       const std::string& path);

}  // namespace zeroproof::train
