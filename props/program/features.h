#pragma once

#include <string>
#include <vector>

#include "props/program/grammar.h"
#include "props/program/program.h"

namespace zeroproof::program {

// The combinations in a program and in the productions that drew it, each once, sorted. Two
// programs with the same features likely exercise the same code of an engine. A feature is one of
//   "forward > backward+engine"       a statement directly after another one
//   "block+no_sync ( step"            a statement inside another one
//   "/fp16/enabled=true x step"       an option, a module or a part of the world, and a statement
//   "refused: step_inside_no_sync"    a misuse
//   "production: interleaved, spike"  a production directly after another one
// A statement is named by its kind and by its members that differ from their defaults; a backward
// also by where its value comes from.
std::vector<std::string> features_of(const Program& program,
                                     const std::vector<const Production*>& productions);

}  // namespace zeroproof::program
