#pragma once

#include <cstdint>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every third case, what is at the limits of what an engine allows, from a stream of its own and
// as far as it fits: steps that miss a gradient, calls in the middle of a backward, losses that
// scaling takes out of their dtype, failed backwards that good ones follow.
Additions limit_additions();

}  // namespace zeroproof::train
