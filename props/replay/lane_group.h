#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "props/replay/rank_digest.h"

namespace zeroproof {

// One rank's file of a run. All of it must outlive the comparison.
struct RunMember {
  const RankDigest* digest = nullptr;
  std::int32_t rank = 0;
  std::string_view path;
};

// A rank of a group with what it issued there; `lane` is null if it issued none.
struct LaneSeat {
  std::size_t member = 0;  // index into the members of the run
  const CollectiveLane* lane = nullptr;

  std::uint64_t size() const { return lane == nullptr ? 0 : lane->operations.size(); }
};

// Ranks whose sequences are equal.
struct LaneClass {
  std::vector<std::size_t> seats;
  std::uint64_t size = 0;
  std::uint64_t order_lc =
      0;  // where it leaves the reference, on the first seat's clock; 0: unknown
};

// One group with the ranks that take part in it, by what they issued.
struct LaneGroup {
  std::string name;
  std::string description;
  std::vector<LaneSeat> seats;     // ascending by rank
  std::vector<LaneClass> classes;  // the reference first: most ranks, then the lowest rank
  std::int64_t first_number = -1;  // where the latest window begins, if they begin differently
  std::int64_t joined = -1;        // every rank has issued this number

  bool agrees() const { return classes.size() < 2; }
  std::string title() const;  // "g0_1 (EXPERT_MODEL_PARALLEL_GROUP)"
};

struct LaneGroups {
  std::vector<LaneGroup> groups;     // in order of their names
  std::vector<std::string> skipped;  // what cannot be compared, and why
};

// Joins the lanes of all ranks by group and members. `members` ascend by rank.
LaneGroups lane_groups(const std::vector<RunMember>& members);

}  // namespace zeroproof
