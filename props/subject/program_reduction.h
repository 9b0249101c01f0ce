#pragma once

#include <cstddef>
#include <functional>

#include "props/program/program.h"

namespace zeroproof::subject {

// How many statements a program has, with those in bodies and hooks.
std::size_t statements_of(const program::Program& program);

// Leaves out of a program's document what can be left out, and lowers numbers, as long as the
// program makes sense and `still_fails` says so of it. Where choices are minimised a program stays
// one that the grammar draws; this one need not. The result is a fixed point, unless `still_fails`
// ended it by saying no.
program::Program reduced(const program::Program& program,
                         const std::function<bool(const program::Program&)>& still_fails);

}  // namespace zeroproof::subject
