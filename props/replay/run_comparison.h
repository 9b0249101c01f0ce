#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/lane_group.h"

namespace zeroproof {

// What the files of one run say together.
struct RunComparison {
  std::string run;  // the word of TraceStory::run
  std::int32_t world = 1;
  std::vector<std::int32_t> ranks;   // those with a file, ascending; none where a rank has two
  std::vector<std::string> files;    // of these ranks
  std::vector<Diagnosis> found;      // a cause before what follows from it
  std::vector<std::string> checked;  // "31 collectives a rank on ranks 0–3, 2 groups"
  std::vector<std::string> skipped;  // what could not be compared, and why
  std::size_t pairs_read = 0;        // of files that were read again, side by side
  bool ends_apart = false;           // ranks part only where the recording of one of them ends
};

// Compares ranks by their digests and reads again only files of ranks that differ, at most a few
// pairs of a run and one pair at a time. `members` ascend by rank, one file a rank.
RunComparison compare_run(const std::vector<RunMember>& members,
                          const std::function<bool()>& should_stop = {});

}  // namespace zeroproof
