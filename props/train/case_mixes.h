#pragma once

#include "props/train/case_spec.h"
#include "props/train/draws.h"

namespace zeroproof::train {

// A plain program of which any number of a case's own (its configuration, its world, what is said
// once for all) has any value that is valid beside the others: no pair of them is one that nobody
// thought of.
CaseSpec draw_mixed_case(Draws& draws);

}  // namespace zeroproof::train
