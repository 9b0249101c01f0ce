#pragma once

#include <string>

#include "props/conform/program_run.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof {

// Forward hooks of the module, or its full backward ones, that make events under `name`.
void watch_forward(ProgramRun& run, nn::Module& module, const std::string& name);
void watch_backward(ProgramRun& run, nn::Module& module, const std::string& name);

}  // namespace zeroproof
