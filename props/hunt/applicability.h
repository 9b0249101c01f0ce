#pragma once

#include <string_view>

#include "props/hunt/overlap_judge.h"
#include "props/interpreter/program_run.h"
#include "props/program/program.h"

namespace zeroproof::hunt {

// Whether a monitor speaks about such a program.
bool is_applicable(const program::Program& program, std::string_view property);

// Of its last world.
OverlapRules overlap_rules_of(const program::RunnableProgram& runnable);

}  // namespace zeroproof::hunt
