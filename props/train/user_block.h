#pragma once

#include <functional>

#include "props/train/case_spec.h"
#include "props/train/train_target.h"

namespace zeroproof::train {

// Runs `body` in the block of the micro-batch, around all engines of the case; alone where it has
// none. Where the user's code throws behind it (`is_broken`), what `body` did stays.
void run_in_block(TrainTarget& target, const CaseSpec& spec, const MicroSpec& micro,
                  const std::function<void()>& body);

}  // namespace zeroproof::train
