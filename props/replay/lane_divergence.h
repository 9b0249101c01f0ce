#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/lane_group.h"
#include "props/replay/rank_lockstep.h"

namespace zeroproof {

// Ranks of a group that part from the others in one place.
struct LaneDivergence {
  std::string title;                    // of the group
  std::vector<std::int32_t> reference;  // ranks that agree with each other
  std::vector<std::int32_t> odd;        // ranks that differ from them
  std::size_t seats = 0;                // ranks of the group with a file
  std::string reference_path;
  std::vector<std::string> odd_paths;
  LockstepDifference difference;  // mine: odd; other: reference
  LockstepExplanation explanation;

  bool is_end() const;
  // Collectives that the ranks had issued before it, on every group: the earliest is the cause.
  std::uint64_t age() const;
};

// The divergence in words, without who waits.
Diagnosis diagnosis_of_divergence(const LaneDivergence& at);

}  // namespace zeroproof
