#pragma once

#include <set>
#include <string>

#include "props/program/program.h"
#include "props/reference/world.h"

namespace zeroproof::program {

// What a program does with an engine that leaves no event.
reference::Unseen unseen_of(const Program& program, const EngineSpec& engine);

// Nodes of a model whose modules return their weights.
std::set<std::string> returned_weights_of(const Model& model);

}  // namespace zeroproof::program
