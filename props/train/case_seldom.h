#pragma once

#include <cstdint>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// In every fifth case, from a stream of its own and as far as it fits: what single draws bring
// together too seldom. Several overflows in turn, a dynamic loss scale that is said to stay,
// no_sync around the first of two rounds, checkpoints of another optimizer, engines that come and
// go, the same registration in every window, backwards that fail inside checkpoints or beside
// others, two backwards in little room, forwards that leave a known order.
Additions seldom_additions();

}  // namespace zeroproof::train
