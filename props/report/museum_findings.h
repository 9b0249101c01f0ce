#pragma once

#include "props/museum/hunt.h"
#include "props/report/located_finding.h"

namespace zeroproof {

// Errors are what makes a hunt fail: an entry that is missed, the canary too, and what the healthy
// engine shows. A planted bug that was found is a warning: the rule that it breaks, and the command
// that shows it again.
LocatedFindings located_findings(const museum::MuseumReport& report);

// What one specimen falsifies with its fault.
LocatedFindings located_findings(const museum::ReadToken& token,
                                 const museum::TrialResult& planted);

}  // namespace zeroproof
