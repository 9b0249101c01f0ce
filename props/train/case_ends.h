#pragma once

#include <cstdint>
#include <string>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"
#include "zeroproof/engine/zero_config.h"

namespace zeroproof::train {

// In every third case, from a stream of its own and as far as it fits: loss scales that fall no
// further, engines that end before their program does, backwards inside a backward that are
// nobody's or fail, changes of weights that are taken back, gradients that are cleared inside a
// block.
Additions end_additions();

// Why a case cannot be so; empty: it can.
std::string end_problem(const CaseSpec& spec);

// Whether the step behind the window of these micro-batches is refused for its loss scale.
bool ends_refused(const CaseSpec& spec, std::size_t first_micro);

// What it says of the loss scale; the rest of that is set.
void set_floor(const CaseSpec& spec, Fp16Config& fp16);

}  // namespace zeroproof::train
