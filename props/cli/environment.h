#pragma once

#include "zeroproof/engine/runtime/process/launch.h"

namespace zeroproof {

// The variables of this process.
Environment environment();

}  // namespace zeroproof
