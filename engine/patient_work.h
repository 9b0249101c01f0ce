#pragma once

#include <functional>

#include "engine/zero/zero_context.h"

namespace zeroproof {

// Work that takes as long as a disk needs. It runs on a thread of its own, while the ranks of the
// engine's data and tensor groups meet every moment: no rank waits for another one long enough for
// a time-out of the runtime.
//
// To be called by all these ranks, each with its work or none. Returns when all works are done, or
// throws what this rank's work or a meeting throws.
struct WorkSide {
  // Returns when every work has called it.
  std::function<void()> barrier;
  // Runs this on the rank's own thread, which alone may touch its tensors; no collective.
  std::function<void(const std::function<void()>&)> on_rank;
};
void run_patiently(ZeroContext& context, const std::function<void(const WorkSide&)>& work);

}  // namespace zeroproof
