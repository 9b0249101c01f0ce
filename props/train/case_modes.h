#pragma once

#include <cstdint>
#include <string>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every fourth case, from a stream of its own and as far as it fits: who may differentiate, and
// does. Manual backwards among the engine's, of two engines too, and an autograd that counts
// nothing, where a manual backward is refused. And whether the configuration is read from a file,
// and one that cannot work is refused.
Additions mode_additions();

// Why a case cannot be so; empty: it can.
std::string mode_problem(const CaseSpec& spec);
// The same of Misuse::manual_backward and past_manual.
std::string manual_backward_problem(const CaseSpec& spec, Misuse misuse);

}  // namespace zeroproof::train
