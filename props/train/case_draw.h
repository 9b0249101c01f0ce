#pragma once

#include <cstdint>

#include "props/train/case_spec.h"

namespace zeroproof::train {

// A valid case; a function of the seed. Swarm: the seed first decides which features the case may
// have at all, then draws within them, so that rare combinations come up by themselves.
CaseSpec draw_case(std::uint64_t seed);

}  // namespace zeroproof::train
