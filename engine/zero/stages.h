#pragma once

#include <memory>

#include "engine/zero/zero_optimizer.h"

namespace zeroproof {

// The optimizer objects of the stages. `context` must outlive what is made; collective.

// Also a Zero3Api (engine/zero/zero3_api.h).
std::unique_ptr<ZeroOptimizer> make_zero3_optimizer(ZeroContext& context);

}  // namespace zeroproof
