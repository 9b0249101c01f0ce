#pragma once

#include "props/exploration.h"
#include "props/replay/replay.h"
#include "props/replay/schedule_replay.h"
#include "props/report/located_finding.h"

namespace zeroproof {

// What traces broke: properties, and the levels and rules of the format that do not agree; an
// unreadable trace, too. By trace, in order of their reports.
LocatedFindings located_findings(const ReplayReport& report);

LocatedFindings located_findings(const std::vector<ScheduleReplay>& schedules);

// One a falsified property of each exploration; an exploration that ended otherwise than it should.
LocatedFindings located_findings(const std::vector<ExplorationReport>& reports);

// Reads the traces again and fills in the lines of events; what cannot be read is left without.
void find_lines(LocatedFindings& findings);

// The finding of a property in words of its catalogue.
LocatedFinding located_finding(const Finding& finding);

}  // namespace zeroproof
