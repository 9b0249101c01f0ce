#pragma once

#include <cstddef>
#include <set>

#include "props/program/contract.h"

namespace zeroproof::program {

// Top-level statements after which no engine has anything of a window: no gradients, no graph that
// a backward may still run over or has failed in, no context.
std::set<std::size_t> rest_points(const Program& program, const Contract& contract);

}  // namespace zeroproof::program
