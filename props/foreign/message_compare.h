#pragma once

#include <vector>

#include "props/foreign/dump_finding.h"
#include "props/foreign/group_compare.h"
#include "props/foreign/rank_dump.h"

namespace zeroproof {

// Joins the sends of each pair of ranks with its receives, in order. A message that waits and has
// no other end names the peer. A message that is complete needs no other end: a ring buffer drops
// what is old, and a small send completes before the receive. `run`: as of collective_groups.
void compare_messages(const std::vector<RankDump>& run, FlightVerdictCounts& verdicts,
                      std::vector<DumpFinding>& findings);

}  // namespace zeroproof
