#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "props/foreign/rank_dump.h"

namespace zeroproof {

// What one rank did in a group, by number. Several operations of one number are a coalesced batch.
struct GroupView {
  const RankDump* dump = nullptr;
  std::vector<const DumpedCollective*> issued;
  std::int64_t shift = 0;  // added to the numbers: windows that count for themselves are aligned

  std::int64_t number(std::size_t at) const { return issued[at]->number + shift; }
  std::int64_t first() const { return number(0); }
  std::int64_t last() const { return number(issued.size() - 1); }

  // Index of the first operation of this number or a later one.
  std::size_t find(std::int64_t wanted) const;
  const DumpedCollective* at(std::int64_t wanted) const;

  // The first that is scheduled or started and not complete; null when there is none.
  const DumpedCollective* first_waiting() const;
};

// The ranks of a process group that left a dump.
struct CollectiveGroup {
  std::string name;  // empty: one of several, the trace does not say which
  std::string desc;
  std::size_t size = 0;                    // 0: unknown
  std::vector<GroupView> views;            // by rank
  std::vector<std::int32_t> without_file;  // members without a dump, ascending

  // Whether equal positions mean the same collective: false where calls of several groups are
  // mixed.
  bool is_named() const { return !name.empty(); }
};

// The groups of a run's collectives, by name and members: ranks may use one name for groups of
// different members. `run`: each rank once, ascending; it must outlive the result.
std::vector<CollectiveGroup> collective_groups(const std::vector<RankDump>& run);

}  // namespace zeroproof
