#pragma once

#include <functional>
#include <vector>

#include "sim/zero_epilogue/findings.h"
#include "sim/zero_epilogue/ranks.h"

namespace zeroproof::zero_epilogue {

struct ReducedCounts {
  std::uint64_t states = 0;
  std::uint64_t transitions = 0;
  std::uint64_t store_bytes = 0;
  bool was_stopped = false;  // by the caller
};

// A shortest execution that violates `property`, in canonical form: the violation is on rank 0
// (ranks are alike), and of all shortest ones that the reduced search meets it is the least.
struct Counterexample {
  Property property = Property::none;
  std::vector<Event> events;
  friend bool operator==(const Counterexample&, const Counterexample&) = default;
};

struct ReducedResult {
  ReducedCounts counts;    // of the verdict
  ReducedCounts shortest;  // of the searches for counterexamples, which come on top
  Findings findings;
  std::vector<Counterexample> counterexamples;  // one a violated property, by property
};

enum class Until {
  every_property,  // the whole reduced space: all properties that can be violated
  first_finding,   // the shortest violation of A1 to A4, or of A5 when there is none
};

// Breadth-first over stubborn sets, first for the verdict: does anything hang or violate? Where
// something does, once more with sets built around rank 0, which meets every property that rank 0
// can violate by a shortest way, and takes no event that does not lead there.
// `should_stop` is asked now and then; may be empty.
ReducedResult search_reduced(const Ranks& ranks, Until until = Until::every_property,
                             const std::function<bool()>& should_stop = {});

}  // namespace zeroproof::zero_epilogue
