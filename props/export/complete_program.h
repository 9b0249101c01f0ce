#pragma once

#include "sim/protocol/program.h"

namespace zeroproof {

// The program with what a script needs and a minimiser may drop: a forward before the first
// backward through its outputs, and a step of each engine at the end.
ProtocolProgram complete_program(ProtocolProgram program);

}  // namespace zeroproof
