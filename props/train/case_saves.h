#pragma once

#include <cstdint>
#include <string>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every fourth case, from a stream of its own and as far as it fits: checkpoints that cannot be
// loaded or saved, each for a reason of its own, loads behind which the loss scale is another one,
// and loss scales that none may be.
Additions save_additions();

// Why a case cannot be so; empty: it can.
std::string save_problem(const CaseSpec& spec);

// The k-th loss scale that every engine refuses.
double wrong_loss_scale(int k);

}  // namespace zeroproof::train
