#pragma once

#include <set>
#include <string>

#include "props/program/program.h"
#include "props/reference/world.h"

namespace zeroproof::program {

// What a program does with an engine that no event tells.
reference::Unseen unseen_of(const Program& program, const EngineSpec& engine);

// Nodes of an engine's model whose weights modules use that do not own them.
struct ExternalUses {
  std::set<std::string> read;      // all of them
  std::set<std::string> returned;  // those that their module returns
};
ExternalUses external_uses_of(const Program& program, const std::string& engine);

}  // namespace zeroproof::program
