#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/zero_epilogue/reduced_search.h"

namespace zeroproof::zero_epilogue {

// One event of a rank, by what the rank has done before it.
struct PlacedEvent {
  Event event;
  RankState before;  // the rank's state where it happens
};

// The second event does not come before the first. It need not come at all.
struct OrderConstraint {
  PlacedEvent first;
  PlacedEvent second;
};

// What makes a schedule fail: every complete schedule that keeps these orders violates the
// property.
struct OrderConstraints {
  std::vector<OrderConstraint> constraints;
  bool is_least = false;  // no fewer do; else no single one can be left out
};

// The least set of orders among those that the failing schedule chose. Empty where that takes
// looking at more than `states_max` states.
std::optional<OrderConstraints> least_constraints(const Ranks& ranks, const Counterexample& failing,
                                                  std::size_t states_max = 1'000'000);

// "hook 3 on rank 0 before hook 2 on rank 0"; the pass is named where there are several.
std::string constraint_text(const Settings& settings, const OrderConstraint& constraint);

}  // namespace zeroproof::zero_epilogue
