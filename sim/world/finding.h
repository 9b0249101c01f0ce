#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace zeroproof::sim {

// What the world itself sees go wrong, whatever the program computes.
enum class FindingKind : std::uint8_t {
  deadlock,             // no task can go on, and one has not ended
  collective_mismatch,  // ranks call different collectives, or in a different order
  use_after_free,       // queued work found its memory gone
  no_progress,          // the step budget ran out
  out_of_memory,
};

struct Finding {
  FindingKind kind = FindingKind::deadlock;
  int rank = -1;           // -1: several
  std::string text;        // one line
  std::uint64_t step = 0;  // of the world
};

std::string_view finding_name(FindingKind kind);  // "deadlock"; static

}  // namespace zeroproof::sim
