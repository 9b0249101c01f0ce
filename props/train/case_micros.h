#pragma once

#include <string>

#include "props/train/case_spec.h"

namespace zeroproof::train {

// Why micro-batches cannot do what a case says; empty: they can.

// Every loss has to reach something that is trained, and what the user does needs a place.
std::string micro_problem(const CaseSpec& spec, const MicroSpec& micro, bool is_boundary);
// The loss of layer 0 alone.
std::string past_engine_problem(const CaseSpec& spec, const MicroSpec& micro);
// Whether a step looks for gradients that are no numbers.
bool looks_for_overflow(const CaseSpec& spec);
// Changes of weights, of all micro-batches.
std::string change_problem(const CaseSpec& spec);

}  // namespace zeroproof::train
