#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace zeroproof {

// How an event touches an object. Additions commute with each other, and with events that only wait
// for a number to be reached: once it is, it stays so.
enum class Touch : std::uint8_t { read, write, add, await };

struct ObjectAccess {
  std::uint32_t object = 0;
  Touch touch = Touch::read;
  std::uint32_t level = 0;  // Touch::await: additions that have to come first
  friend bool operator==(const ObjectAccess&, const ObjectAccess&) = default;
};

// What an event reads, writes and increments; each object at most once. Two enabled events whose
// footprints do not conflict are independent: either order is possible, and both end in the same
// state.
using Footprint = std::vector<ObjectAccess>;

constexpr bool do_conflict(Touch left, Touch right) {
  if (left == Touch::write || right == Touch::write) return true;
  const bool has_add = left == Touch::add || right == Touch::add;
  const bool has_read = left == Touch::read || right == Touch::read;
  return has_add && has_read;
}

inline bool are_independent(const Footprint& left, const Footprint& right) {
  return std::none_of(left.begin(), left.end(), [&](const ObjectAccess& mine) {
    return std::any_of(right.begin(), right.end(), [&](const ObjectAccess& other) {
      return mine.object == other.object && do_conflict(mine.touch, other.touch);
    });
  });
}

}  // namespace zeroproof
