#pragma once

#include <cstdint>
#include <string>

#include "engine/zero_config.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every fourth case, from a stream of its own and as far as it fits: where parameters live, the
// dtype of master weights and optimizer states, graphs that can be differentiated once more, and
// looks at all values from hooks.
CaseSpec with_storage(const CaseSpec& spec, std::uint64_t seed);

// Of the parameters that do not persist, at least.
int travelling_elements(const CaseSpec& spec);

// Why a case cannot be so; empty: it can.
std::string storage_problem(const CaseSpec& spec);

// What offload keeps on the host of each rank, at least, once it has trained.
std::int64_t offloaded_bytes(const CaseSpec& spec);

// What it says of the configuration; the precision is set.
void set_storage(const CaseSpec& spec, ZeroConfig& config);

}  // namespace zeroproof::train
