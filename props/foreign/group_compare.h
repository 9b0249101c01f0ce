#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "props/foreign/collective_group.h"
#include "props/foreign/dump_finding.h"

namespace zeroproof {

// By flight_verdict_name, over pairs of ranks.
using FlightVerdictCounts = std::map<std::string, std::uint64_t>;

// Compares the ranks of one group, number by number, from the first that every ring buffer still
// has, up to the first difference; then what the ranks wait in. Windows of a profiler are aligned
// first, and their ends may be unequal. Of each group at most one defect is found.
void compare_group(CollectiveGroup group, FlightVerdictCounts& verdicts,
                   std::vector<DumpFinding>& findings);

}  // namespace zeroproof
