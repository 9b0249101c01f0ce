#pragma once

#include <cstdint>

#include "sim/world/sim_world.h"

namespace zeroproof {

// One random program in one random order: all ranks queue the same collectives on streams that
// the seed draws, some of them waited for and some not, so that what they read depends on the
// order. The hash covers every decision and seam call, and what the ranks read in the end.
Fingerprint random_execution(std::uint64_t seed);

}  // namespace zeroproof
