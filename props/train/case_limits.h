#pragma once

#include <cstdint>

#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every third case, what is at the limits of what an engine allows, from a stream of its own and
// as far as it fits: steps that miss a gradient, calls in the middle of a backward, losses that
// scaling takes out of their dtype, failed backwards that good ones follow.
CaseSpec with_limits(const CaseSpec& spec, std::uint64_t seed);

}  // namespace zeroproof::train
