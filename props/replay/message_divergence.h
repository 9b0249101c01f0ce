#pragma once

#include <functional>
#include <string>
#include <vector>

#include "props/replay/lane_group.h"
#include "props/replay/rank_waits.h"

namespace zeroproof {

struct MessageComparison {
  std::vector<Diagnosis> found;      // at most one
  std::vector<std::string> skipped;  // what cannot be compared, and why
  std::uint64_t pairs = 0;           // of ranks whose messages were paired
};

// Pairs the nth send of a rank to another with the nth recv there, by group: both must exist and
// have the same size. Messages are no collectives: ranks need not send alike.
MessageComparison compare_messages(const std::vector<RunMember>& members, const RankWaits& waits,
                                   const std::function<bool()>& should_stop);

}  // namespace zeroproof
