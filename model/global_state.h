#pragma once

#include <optional>

#include "model/rng.h"

namespace zeroproof {

// What PyTorch keeps once a process, whatever the thread; compare LocalState.
struct GlobalState {
  Rng rng;
  std::optional<bool> checkpoint_early_stop;  // overrides what a checkpoint itself says (rule K6)
};

}  // namespace zeroproof
