#pragma once

#include <vector>

#include "props/hunt/program_hunt.h"
#include "props/report/junit.h"
#include "props/report/located_finding.h"

namespace zeroproof {

// What a hunt over programs tells tools: faults, and findings of the unmutated engine.
struct ProgramHuntFindings {
  const std::vector<hunt::ProgramFound>& found;
  const std::vector<hunt::ProgramFound>& unmutated;
  bool is_canary_found = true;
};

// A fault that is missed is an error, one that is found a warning that names the property.
LocatedFindings located_findings(const ProgramHuntFindings& findings);
std::vector<JUnitCase> program_hunt_cases(const ProgramHuntFindings& findings);

}  // namespace zeroproof
