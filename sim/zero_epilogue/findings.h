#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "sim/zero_epilogue/rank_state.h"

namespace zeroproof::zero_epilogue {

// What a search saw violated. Independent of the order in which it looked.
class Findings {
 public:
  // `events`: up to and including the one that violates.
  void add(Property property, std::uint64_t events) {
    Seen& seen = seen_[static_cast<std::size_t>(property)];
    seen.least_events = std::min(seen.least_events, events);
    ++seen.count;
  }
  void merge(const Findings& other) {
    for (std::size_t i = 0; i < kProperties; ++i) {
      seen_[i].least_events = std::min(seen_[i].least_events, other.seen_[i].least_events);
      seen_[i].count += other.seen_[i].count;
    }
  }
  bool is_empty() const { return !first().has_value(); }
  bool has(Property property) const { return at(property).count != 0; }
  std::uint64_t least_events(Property property) const { return at(property).least_events; }

  // The property with the shortest counterexample; of several the lowest.
  std::optional<Property> first() const {
    std::optional<Property> best;
    for (std::size_t i = 1; i < kProperties; ++i) {
      const auto property = static_cast<Property>(i);
      if (!has(property)) continue;
      if (!best || least_events(property) < least_events(*best)) best = property;
    }
    return best;
  }
  std::uint64_t violating_events() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 1; i < kProperties; ++i) {
      if (static_cast<Property>(i) != Property::a5) sum += seen_[i].count;
    }
    return sum;
  }

 private:
  struct Seen {
    std::uint64_t least_events = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t count = 0;
  };
  const Seen& at(Property property) const { return seen_[static_cast<std::size_t>(property)]; }

  std::array<Seen, kProperties> seen_{};
};

}  // namespace zeroproof::zero_epilogue
