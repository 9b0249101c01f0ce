#pragma once

#include <vector>

#include "engine/zero/stage3/zero3_module.h"

namespace zeroproof {

// The modules that the configuration makes leaves (zero_semantics 3.7): by class name, by name, by
// the end of the name, or because their parameters are spread over many small modules. None is
// below another. std::invalid_argument for a class that no module has.
std::vector<Zero3Module*> configured_leaf_modules(const ZeroConfig& config, Zero3Modules& modules);

}  // namespace zeroproof
