#pragma once

#include <vector>

#include "engine/zero/stage3/zero3_module.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// The modules that the configuration makes leaves (docs/spec/zero.md 3.7): by class name, by name,
// by the end of the name, or because their parameters are spread over many small modules. None is
// below another. Its classes are checked.
std::vector<Zero3Module*> configured_leaf_modules(const ZeroConfig& config, Zero3Modules& modules);

// An error for a class that no module below `root` has, or it itself.
Result<void> check_leaf_classes(const LeafModuleConfig& leaf, nn::Module& root);

}  // namespace zeroproof
