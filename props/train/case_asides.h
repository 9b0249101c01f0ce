#pragma once

#include <cstdint>
#include <string>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every third case, from a stream of its own and as far as it fits, what a program does besides
// and around its engine's calls: questions about gradients in the middle of a window, a loss scale
// behind zero_grad, ranks that take different branches, checkpoints and autocast regions around
// forward, loads that nobody looked before, sums that need their accumulation dtype.
Additions aside_additions();

// Why a micro-batch cannot do so, or a case have such sums; empty: it can.
std::string aside_problem(const CaseSpec& spec, const MicroSpec& micro);
std::string width_problem(const CaseSpec& spec);

}  // namespace zeroproof::train
