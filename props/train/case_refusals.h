#pragma once

#include <string>

#include "props/train/case_spec.h"

namespace zeroproof::train {

// Why a micro-batch cannot do what engines refuse, or what hooks do to them; empty: it can.

// The program does what is refused, and the engine has to be one that refuses it.
std::string misuse_problem(const CaseSpec& spec, const MicroSpec& micro);
// A hook of the user that calls engines.
std::string interrupt_problem(const CaseSpec& spec, const MicroSpec& micro);

}  // namespace zeroproof::train
