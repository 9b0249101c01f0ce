#pragma once

#include <cstdint>

namespace zeroproof {

// When parameters that a skipped frame gathered are given back (docs/spec/zero.md 5).
enum class FallbackRule : std::uint8_t {
  per_graph,           // #8157, ours: when the last graph that read them had its backward
  after_any_backward,  // #8059: all of them, with the backward that completes first
  after_forward,       // at the end of the forward, as module hooks would
};

}  // namespace zeroproof
