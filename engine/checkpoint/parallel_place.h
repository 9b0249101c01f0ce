#pragma once

namespace zeroproof {

// This process's place in a group of ranks.
struct ParallelRank {
  int rank = 0;
  int size = 1;
  friend bool operator==(const ParallelRank&, const ParallelRank&) = default;
};

// Which part of each tensor a process holds.
struct ParallelPlace {
  ParallelRank tensor;
  ParallelRank expert;
  friend bool operator==(const ParallelPlace&, const ParallelPlace&) = default;
};

}  // namespace zeroproof
