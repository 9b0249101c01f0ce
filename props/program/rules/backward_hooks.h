#pragma once

#include "props/program/rules.h"

namespace zeroproof::program {

// The hooks of the user in a backward of the value, in the order in which it comes to them. `frame`
// is what is around their statements, but for its engine.
Result<void> run_backward_hooks(Walk& walk, const Value& value, const Frame& frame);

}  // namespace zeroproof::program
