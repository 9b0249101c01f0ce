#pragma once

#include <string>

#include "props/train/case_spec.h"

namespace zeroproof::train {

// Why an engine cannot be configured as a case says, or refuses the case as documented; empty: it
// can.

// Combinations that are refused as documented (manual_backward_unsupported,
// backward_without_loss_scaling, backward_of_invalid_loss), which is another test's matter.
std::string refusal_problem(const CaseSpec& spec);
// Leaf modules, external parameters, weights that are returned.
std::string option_problem(const CaseSpec& spec);
std::string update_problem(const CaseSpec& spec);
// Every parameter that is trained gets a gradient from a forward that skips nothing.
std::string need_problem(const CaseSpec& spec);

}  // namespace zeroproof::train
