#pragma once

#include <cstdint>
#include <string>

#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every sixth case, from a stream of its own and as far as it fits: what users do at the edge of
// what an engine knows. Parameters that no group has, backwards inside a context that gathers,
// losses that nobody scaled, backwards that fail with gradients of two dtypes.
CaseSpec with_manners(const CaseSpec& spec, std::uint64_t seed);

// Why a case cannot be so; empty: it can.
std::string manner_problem(const CaseSpec& spec);

}  // namespace zeroproof::train
