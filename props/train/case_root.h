#pragma once

#include <string>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every sixth case, from a stream of its own and as far as it fits: the root has a weight of its
// own, or a window comes to nothing.
Additions root_additions();
std::string root_problem(const CaseSpec& spec);

}  // namespace zeroproof::train
