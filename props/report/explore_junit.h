#pragma once

#include <string>
#include <vector>

#include "props/exploration.h"
#include "props/report/junit.h"

namespace zeroproof {

// One case a property of each exploration; a search that ended early is an error of its own.
std::vector<JUnitCase> explore_cases(const std::vector<ExplorationReport>& reports);

// The case of one property in one run.
JUnitCase property_case(const std::string& suite, const Verdict& verdict);

}  // namespace zeroproof
