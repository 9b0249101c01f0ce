#pragma once

#include <cstdint>
#include <string>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"
#include "zeroproof/engine/zero_config.h"

namespace zeroproof::train {

// In every fourth case, from a stream of its own and as far as it fits: where parameters live and
// in what dtypes masters, states and gradients are kept, scaled and sent; windows that overflow and
// are lost, losses that fail, graphs of gradients and graphs that are kept; what the user holds,
// looks at from hooks or has room to gather ahead.
Additions storage_additions();

// Of the parameters that do not persist, at most.
int travelling_elements(const CaseSpec& spec);

// Of one engine's layers.
int elements_of_layers(const CaseSpec& spec);

// Why a case cannot be so; empty: it can.
std::string storage_problem(const CaseSpec& spec);

// What offload keeps on the host of each rank, at least, once it has trained.
std::int64_t offloaded_bytes(const CaseSpec& spec);

// What it says of the configuration; the precision is set.
void set_storage(const CaseSpec& spec, ZeroConfig& config);

}  // namespace zeroproof::train
