#pragma once

#include <string_view>

#include "props/hunt/overlap_judge.h"
#include "props/program/program.h"

namespace zeroproof::hunt {

// Whether a monitor speaks about such a program.
bool is_applicable(const program::Program& program, std::string_view property);

// `config`: of its last world.
OverlapRules overlap_rules_of(const program::Program& program, const ZeroConfig& config);

}  // namespace zeroproof::hunt
