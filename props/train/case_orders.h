#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every fourth case, from a stream of its own and as far as it fits: what stage 3 does by the
// order of modules. Ranks that run them in different ones, graphs that are kept on some ranks
// alone, branches whose graphs live side by side, distances of reuse that are just met or missed,
// rooms for gathering ahead that are just filled.
Additions order_additions();

// Why a case cannot be so; empty: it can.
std::string order_problem(const CaseSpec& spec);

// Which modules without parameters the forwards behind all windows run on this rank, of a case that
// `reorders`. All ranks have recorded one order by then, and the last forward but one records anew.
std::vector<std::vector<std::size_t>> orders_of_asides(const CaseSpec& spec, int rank);

// Whether this rank sees that its order is not rank 0's.
bool refuses_order(const CaseSpec& spec, int rank);

// The micro-batch as the first or the second (1) of its `branches` runs it.
MicroSpec branch_of(const CaseSpec& spec, const MicroSpec& micro, int which);

}  // namespace zeroproof::train
