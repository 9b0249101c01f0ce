#pragma once

#include <cstdint>

#include "engine/release.h"

namespace zeroproof {

// What DeepSpeed began to do around its engine, where a recorded run shows it.
enum class DeepspeedChange : std::uint8_t {
  tracks_graph_of_backward,  // engine.backward: a division, a hook on its result and a callback
};

// Whether a release behaves so: deepspeed_differences.json has the first one of each change.
bool behaves(DeepspeedChange change, Release release);

}  // namespace zeroproof
