#pragma once

#include <string>

#include "sim/protocol/program.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// `def PROGRAM(run)`: the statements of the program as Python, with what lies between engine
// outputs and losses written out where it is used.
Result<std::string> program_text(const ProtocolProgram& program);

}  // namespace zeroproof
