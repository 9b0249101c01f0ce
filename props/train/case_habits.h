#pragma once

#include <string>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every fourth case, from a stream of its own and as far as it fits: no_sync around a forward or
// a backward alone, losses that are differentiated twice, long rows of overflows, infinities of the
// other sign, weights whose names begin alike, loss scales where none is needed or of one engine
// alone, gradients that are asked for behind a step.
Additions habit_additions();

// Why a case cannot be so; empty: it can.
std::string habit_problem(const CaseSpec& spec);

}  // namespace zeroproof::train
