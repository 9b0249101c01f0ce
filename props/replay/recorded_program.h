#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "props/program/program.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// The training program of a recorded job: its modules with small weights, its forwards, backwards,
// contexts and steps in their order, on at most four ranks.
struct RecordedProgram {
  program::Program program;
  std::map<std::string, std::int64_t> left_out;  // what a program cannot say, and how often
};

// Of one rank's trace up to its `steps_max`-th step. Errors: as TraceReader; usage for a recording
// without a forward, or of which no program can be made, and why.
Result<RecordedProgram> program_of_recording(const std::string& path, std::int64_t steps_max);

}  // namespace zeroproof
