#pragma once

#include <string>

#include "props/exploration.h"
#include "sim/schedule.h"

namespace zeroproof {

// Writes one run as a hooktrace file, gzip when the name ends in ".gz". Its clock is virtual.
Result<void> write_run_trace(const Schedule& schedule, const Scenario& scenario,
                             const RecordedRun& run, const std::string& path);

}  // namespace zeroproof
