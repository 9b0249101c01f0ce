#pragma once

#include <vector>

#include "engine/zero/zero_context.h"

namespace zeroproof {

// What all ranks of the data group have in slices of one length, in a row: what
// getters give and checkpoints hold. Collective, without an event.
std::vector<double> gather_slices(const ZeroContext& context, const Span& slice);

}  // namespace zeroproof
