#pragma once

#include "props/mutation/hunt.h"
#include "props/report/located_finding.h"

namespace zeroproof {

// Errors are what makes a hunt fail: a fault that is missed, the canary too, and what the unmutated
// engine shows. A fault that was found is a warning: the rule that it breaks, and the command
// that shows it again.
LocatedFindings located_findings(const mutation::HuntReport& report);

// What one counterexample falsifies with its fault.
LocatedFindings located_findings(const mutation::ReadToken& token,
                                 const mutation::CaseResult& mutated);

}  // namespace zeroproof
