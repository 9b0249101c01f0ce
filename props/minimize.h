#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "model/check.h"
#include "sim/schedule.h"

namespace zeroproof {

struct MinimizeBudget {
  std::uint64_t tests = 10'000;  // calls of still_fails, without the final confirmation
};

struct MinimizeStats {
  std::uint64_t tests = 0;  // calls of still_fails, the final confirmation included
  std::uint64_t steps = 0;  // times something smaller still failed
  bool is_minimal = false;  // no candidate of the result fails; false when the budget ended first
};

template <class Case>
struct Minimized {
  Case value;
  MinimizeStats stats;
};

// Indices of the parts to keep, ascending.
using KeptParts = std::vector<std::size_t>;

struct MinimizedParts {
  KeptParts kept;
  MinimizeStats stats;
};

// Delta debugging (ddmin) over the parts 0 ... part_count-1 of something that fails with all of
// them: drops ever smaller chunks. Minimal means that no single part can be dropped. All parts
// must fail, and the result is run again before it is returned; ZP_CHECK otherwise, since a
// case that does not fail again was never deterministic.
MinimizedParts minimize_parts(std::size_t part_count,
                              const std::function<bool(const KeptParts&)>& still_fails,
                              const MinimizeBudget& budget = {});

// Choices that are simpler than these: a suffix, a block or a single one set to 0, single
// ones lowered. Ordered from bold to timid. Run them with ReplayFit::lenient and take the
// recorded choices as the smaller case.
std::vector<Choices> simpler_choices(const Choices& choices);

// Greedy descent for anything else: takes the first of `candidates(value)` that still fails and
// starts again from there, until none does. Deterministic when both functions are. candidates:
// Case -> range of Case, each strictly smaller by some measure, bold ones first. The same
// demands on still_fails as above.
template <class Case, class Candidates, class StillFails>
Minimized<Case> minimize(Case value, Candidates candidates, StillFails still_fails,
                         const MinimizeBudget& budget = {}) {
  MinimizeStats stats;
  // Replaces `value` by its first failing candidate; false when there is none.
  const auto descend = [&] {
    for (Case& candidate : candidates(std::as_const(value))) {
      if (stats.tests == budget.tests) return false;
      ++stats.tests;
      if (!still_fails(std::as_const(candidate))) continue;
      value = Case(std::move(candidate));
      ++stats.steps;
      return true;
    }
    stats.is_minimal = true;
    return false;
  };
  while (descend()) {
  }
  ++stats.tests;
  ZP_CHECK(still_fails(std::as_const(value)), "the minimised case does not fail again");
  return {std::move(value), stats};
}

}  // namespace zeroproof
