#pragma once

#include "model/result.h"
#include "props/report/located_finding.h"
#include "props/report/picture/picture.h"
#include "sim/schedule.h"

namespace zeroproof {

// A schedule of the real engine, run again in the simulator: every rank's lanes. Findings are
// marked at the last event of their rank. Errors as of train::write_schedule_traces().
Result<Picture> engine_schedule_picture(const Schedule& schedule, const LocatedFindings& findings);

}  // namespace zeroproof
