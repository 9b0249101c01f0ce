#pragma once

#include <cstdint>
#include <string>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every sixth case, from a stream of its own and as far as it fits: what users do at the edge of
// what an engine knows. Parameters that no group has, backwards inside a context that gathers,
// losses that nobody scaled, backwards that fail with gradients of two dtypes.
Additions manner_additions();

// Why a case cannot be so; empty: it can.
std::string manner_problem(const CaseSpec& spec);

}  // namespace zeroproof::train
