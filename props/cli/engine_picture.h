#pragma once

#include "props/report/located_finding.h"
#include "props/report/picture/picture.h"
#include "sim/schedule.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// A schedule of the real engine, run again in the simulator: every rank's lanes. Findings are
// marked at the last event of their rank. Errors as of train::write_schedule_traces().
Result<Picture> engine_schedule_picture(const Schedule& schedule, const LocatedFindings& findings);

// Marks findings that name no event at the last one of their rank.
void mark_last_events(const LocatedFindings& findings, Picture& picture);
// Takes the last fact of every process away: its file, of a picture of temporary ones.
void forget_files(Picture& picture);

}  // namespace zeroproof
