#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "props/program/program.h"
#include "props/program/state.h"

namespace zeroproof::relations {

// Programs with other statements or modules.

// Every statement becomes what `change` makes of it; of its body and hooks first.
program::Body rewritten(const program::Body& body,
                        const std::function<program::Body(program::Statement)>& change);
// The same with modules; those of its body first.
program::ModuleList rewritten(const program::ModuleList& list,
                              const std::function<program::ModuleList(program::Module)>& change);
// Of every body and head of every model.
void rewrite_models(program::Program& program,
                    const std::function<program::ModuleList(program::Module)>& change);

// Where a program is before each statement of its body, and after the last one.
std::vector<program::State> states_of(const program::Program& program);

// Whether sums are exact, and no dtype on the way is narrower than float32.
bool has_exact_float32(const program::Program& program);
// Whether a model adds a constant to its losses.
bool adds_to_losses(const program::Program& program);
// Whether sums are exact, and stay so where all contributions are times a power of two.
bool can_scale(const program::Program& program);
// The same with every step a boundary: those that are none go, and boundaries are not set. None:
// some step is not at the top level.
std::optional<program::Body> boundaries_alone(const program::Program& program);
// Whether ranks do different things to weights, or name one of them.
bool changes_weights(const program::Program& program);

}  // namespace zeroproof::relations
