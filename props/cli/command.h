#pragma once

#include <span>

#include "props/cli/exit_code.h"

namespace zeroproof {

// The whole command: finds the verb, parses its flags, runs it, writes its results. Errors go to
// stderr, one line each.
ExitCode run_command(std::span<const char* const> arguments);

}  // namespace zeroproof
