#pragma once

#include <cstdint>

#include "sim/zero_epilogue/ranks.h"

namespace zeroproof::zero_epilogue {

// Processes of the model: engine of rank r is bit r, its stream bit r + kRanksMax.
using ProcessSet = std::uint32_t;

constexpr ProcessSet engine_of(std::size_t rank) {
  return ProcessSet{1} << rank;
}
constexpr ProcessSet stream_of(std::size_t rank) {
  return ProcessSet{1} << (rank + kRanksMax);
}

// Strong stubborn sets over processes. A closed set has, for every process in it, all processes
// whose events depend on its enabled events, and, when it waits, one process whose events have to
// come first (sim/zero_epilogue/footprints.h says which events touch what; the tests execute both
// orders). So no execution that leaves the set out can interfere with what the set does next:
// exploring only the enabled events of a closed set meets every deadlock and every violation, and,
// when the set contains the process that is to violate, by a shortest way.
class Stubborn {
 public:
  Stubborn(const Ranks& ranks, const Digits& digits) : ranks_(ranks), digits_(digits) {}

  // The least closed set that this rule finds around `seed`.
  ProcessSet closure(ProcessSet seed) const;

  // A closed set with an enabled event, as small as is known at once; 0 when no rank can move.
  ProcessSet smallest() const;

  bool has_enabled(ProcessSet set) const;

 private:
  const LocalFacts& facts(std::size_t rank) const {
    return ranks_.automaton().facts(digits_[rank]);
  }
  bool has_moves(std::size_t rank) const {
    return !ranks_.automaton().moves(digits_[rank]).empty();
  }
  ProcessSet needed_by_engine(std::size_t rank) const;
  ProcessSet needed_by_stream(std::size_t rank) const;

  const Ranks& ranks_;
  const Digits& digits_;
};

}  // namespace zeroproof::zero_epilogue
