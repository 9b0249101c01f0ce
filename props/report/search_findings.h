#pragma once

#include "props/hook_order.h"
#include "props/report/engine_report.h"
#include "props/report/located_finding.h"
#include "props/report/picture/picture.h"
#include "props/zero_epilogue.h"

namespace zeroproof {

// Findings of the searches that are no protocol scenario: the engine in the simulator and the
// common models.
LocatedFindings located_findings(const std::vector<TimedExploration>& explorations);
LocatedFindings located_findings(const std::vector<train::EngineReplay>& replays);
LocatedFindings located_findings(const ZeroEpilogueReport& report);
LocatedFindings located_findings(const HookOrderReport& report);

// One of them; `schedule` shows it again.
LocatedFinding located_finding(const train::CaseFinding& finding, const Schedule& schedule);

// The events of a counterexample in their order, a lane a rank; the last one is the bad moment.
Picture finding_picture(const ZeroEpilogueReport& report, const ZeroEpilogueFinding& finding);
Picture finding_picture(const HookOrderReport& report, const HookOrderFinding& finding);

}  // namespace zeroproof
