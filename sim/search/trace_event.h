#pragma once

#include <cstdint>

#include "sim/search/footprint.h"

namespace zeroproof {

// One event of a program of several processes. The label names the next events that a process can
// have in one state of its own apart; the footprint belongs to the program and outlives the event.
struct TraceEvent {
  std::uint32_t process = 0;
  std::uint32_t label = 0;
  const Footprint* footprint = nullptr;
};

inline bool is_same(const TraceEvent& left, const TraceEvent& right) {
  return left.process == right.process && left.label == right.label;
}

// Both orders differ, or only one of them is possible.
inline bool are_dependent(const TraceEvent& left, const TraceEvent& right) {
  return left.process == right.process || !are_independent(*left.footprint, *right.footprint);
}

}  // namespace zeroproof
