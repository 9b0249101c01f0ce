#pragma once

#include "engine/runtime/side_work.h"
#include "engine/zero/zero_context.h"

namespace zeroproof {

// Runs work that takes as long as a disk needs, while the ranks of the engine's data and tensor
// groups meet every moment: no rank waits for another one long enough for a time-out of the
// runtime. To be called by all these ranks, each with its work or none; a barrier of the works
// returns when all of them have called it. Returns when all are done, or throws what this rank's
// work or a meeting throws.
void run_patiently(ZeroContext& context, const SideWork::Work& work);

}  // namespace zeroproof
