#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "props/program/program.h"

namespace zeroproof::program {

// Every statement, in the order of the text: a statement before those of its hooks and body.
void visit_statements(const Body& body, const std::function<void(const Statement&)>& visit);

// The body of a statement, or null.
const Body* body_of(const Statement& statement);

// In which an autocast block computes; none for other blocks.
std::optional<DType> autocast_dtype(const Block& block, const ZeroConfig& config);

// An upper bound for the forwards between two updates, and for how often one forward's
// contributions are added by backwards, each weighed by its head.
struct WindowBounds {
  std::int64_t forwards = 1;
  std::int64_t additions = 1;
};
WindowBounds window_bounds(const Program& program);

}  // namespace zeroproof::program
