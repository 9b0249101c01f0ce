#pragma once

#include <cstdint>
#include <string>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In one of some fifteen cases, from a stream of its own and as far as it fits: calls in which the
// device runs out of memory, and which the user repeats.
Additions shortage_additions();

// Why a case cannot be so; empty: it can.
std::string shortage_problem(const CaseSpec& spec);

// Whether the user clears gradients behind what failed there. Behind other backwards and stages
// nothing of it stays anyway.
bool clears_behind_shortage(const CaseSpec& spec, std::size_t i);

}  // namespace zeroproof::train
