#pragma once

#include <cstdint>
#include <string>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every third case, from a stream of its own and as far as it fits: what modules and linear
// functions get, and the gradients for it; weights that a user runs, changes or outdates in a
// context of his own, and what one rank alone does not read.
Additions input_additions();

// Why a case cannot be so; empty: it can.
std::string input_problem(const CaseSpec& spec);

// Whether the user sees gradients for what linear functions get, and the baseline's are the same:
// a manual backward may divide them, or leave that to the reduction.
bool compares_watched(const CaseSpec& spec);

}  // namespace zeroproof::train
