#pragma once

#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/lane_group.h"
#include "props/replay/replay.h"

namespace zeroproof {

// Whether a diagnosis of files that still grow holds whatever comes after. What is missing may yet
// come, and what ranks do not share may yet be explained: those wait for the end, or for a job that
// stands still.
bool is_certain(const Diagnosis& found, const std::vector<const TraceReplay*>& traces);

// Follows where the ranks of a run part, to know when what comes after it no longer changes the
// words of the diagnosis.
class PartingLanes {
 public:
  // Whether a difference in content is there that the ranks have all gone past far enough.
  bool is_settled(const LaneGroups& lanes);

 private:
  struct Seen {
    std::string group;
    std::uint64_t size = 0;  // of the longest lane when the difference was first seen
  };
  bool is_settled(const LaneGroup& group);

  std::vector<Seen> seen_;
};

}  // namespace zeroproof
