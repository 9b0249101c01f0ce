#pragma once

#include <cstdint>
#include <string>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every third case, from a stream of its own and as far as it fits: forwards and backwards in
// other turns. Engines that take turns, forwards ahead of a step, heads whose backwards interleave,
// backwards that fail or run inside others, micro-batches past the engine; what is asked of
// gradients, said of loss scales and listed in parameter groups meanwhile.
Additions turn_additions();

// Why a case cannot be so; empty: it can.
std::string turn_problem(const CaseSpec& spec);

// Whether the next micro-batch's forward comes before the step behind this one.
inline bool is_ahead(const MicroSpec& micro) {
  return static_cast<Outstanding>(micro.outstanding) == Outstanding::ahead;
}

// Whether an engine's gradients, wherever in a window, are what its one rank has added up.
bool knows_gradients(const CaseSpec& spec);

}  // namespace zeroproof::train
