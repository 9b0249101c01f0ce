#pragma once

#include <compare>
#include <cstdint>

namespace zeroproof::hook_order {

enum class MoveKind : std::uint8_t {
  hook,      // a gradient hook fires; `index`: of the parameter
  end,       // the graph task ends: callbacks, epilogue
  complete,  // the collective at the head of a stream completes; `index`: of the stream
};

// What may happen next.
struct Move {
  std::uint8_t rank = 0;
  MoveKind kind = MoveKind::hook;
  std::uint8_t index = 0;
  friend auto operator<=>(const Move&, const Move&) = default;
};

}  // namespace zeroproof::hook_order
