#pragma once

#include <cstdint>

#include "zeroproof/internal/engine/release.h"

namespace zeroproof {

// What DeepSpeed began to do around its engine, where a recorded run shows it.
enum class DeepspeedChange : std::uint8_t {
  tracks_graph_of_backward,      // engine.backward: a division, a hook on its result and a callback
  clips_by_default,              // gradient_clipping is 1.0 where the configuration has none
  replaces_linear_of_any_model,  // before: only of a model that zero.Init makes
};

// Whether a release behaves so: deepspeed_differences.json has the first one of each change. A
// checkout, 0.0.0, behaves like the release that the file names.
bool behaves(DeepspeedChange change, Release release);

}  // namespace zeroproof
