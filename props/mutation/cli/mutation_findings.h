#pragma once

#include <vector>

#include "props/hunt/program_hunt.h"
#include "props/report/junit.h"
#include "props/report/located_finding.h"

namespace zeroproof {

// The findings of a hunt for tools: faults, and findings of the unmutated engine.
struct HuntFindings {
  const std::vector<hunt::ProgramFound>& found;
  const std::vector<hunt::ProgramFound>& unmutated;
  bool is_canary_found = true;
};

// A fault that is missed is an error, one that is found a warning that names the property.
LocatedFindings located_findings(const HuntFindings& findings);
std::vector<JUnitCase> hunt_cases(const HuntFindings& findings);

}  // namespace zeroproof
