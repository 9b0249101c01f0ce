#pragma once

#include <vector>

#include "props/replay/replay.h"
#include "props/report/junit.h"

namespace zeroproof {

// One case a level of each trace and one a falsified or held property; a level without anything
// to compare is skipped.
std::vector<JUnitCase> replay_cases(const ReplayReport& report);

}  // namespace zeroproof
