#pragma once

#include <string>

#include "model/nn/module.h"
#include "props/conform/program_run.h"

namespace zeroproof {

// Forward hooks of the module, or its full backward ones, that make events under `name`.
void watch_forward(ProgramRun& run, nn::Module& module, const std::string& name);
void watch_backward(ProgramRun& run, nn::Module& module, const std::string& name);

}  // namespace zeroproof
