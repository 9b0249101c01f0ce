#pragma once

#include <vector>

#include "props/train/case_spec.h"

namespace zeroproof::train {

// Valid cases that are simpler than this one in a single way, bold ones first: a window, an
// engine, a call, a layer or a micro-batch less, fewer ranks, a number at its simple value or
// nearer to it.
std::vector<CaseSpec> simpler_cases(const CaseSpec& spec);

}  // namespace zeroproof::train
