#pragma once

#include <vector>

#include "props/hunt/mutant.h"
#include "props/mutation/fault.h"

namespace zeroproof::mutation {

// A fault as what a hunt over programs looks for.
hunt::Mutant mutant_of(const Fault& fault);
std::vector<hunt::Mutant> mutants_of(const std::vector<const Fault*>& faults);

}  // namespace zeroproof::mutation
