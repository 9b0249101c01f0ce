#pragma once

#include <vector>

#include "props/interpreter/program_run.h"
#include "props/reference/world.h"

namespace zeroproof::program {

// What the reference walker has to know of the engines of a program's last world, on any rank:
// their tables, and what the program does that leaves no event.
std::vector<reference::World> program_worlds(const RunnableProgram& runnable,
                                             const EngineVariant& variant);

}  // namespace zeroproof::program
