#pragma once

#include <vector>

#include "props/foreign/rank_dump.h"

namespace zeroproof {

// Dumps that speak about one stretch of one run: each rank once, ascending.
struct DumpRun {
  std::vector<RankDump> ranks;
};

// Sorts dumps into runs: names that differ in their rank only are one run, and so are Kineto traces
// of one folder whose ranks complete each other. Several Kineto traces of one rank are windows one
// after the other; those of all ranks that lie together in time become one DumpRun. A rank that is
// there as JSON and as pickle is kept once. `unpaired`: windows that no other rank has.
struct DumpRuns {
  std::vector<DumpRun> runs;
  std::vector<std::string> unpaired;  // paths
};
DumpRuns dump_runs(std::vector<RankDump> dumps);

}  // namespace zeroproof
