#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "props/program/program.h"

namespace zeroproof::program {

// Every statement, in the order of the text: a statement before those of its hooks and body.
void visit_statements(const Body& body, const std::function<void(const Statement&)>& visit);
// It, and those of its hooks and body.
void visit_statement(const Statement& statement,
                     const std::function<void(const Statement&)>& visit);

// The statement as one of that kind, or null.
template <class Kind>
const Kind* as(const Statement& statement) {
  return std::get_if<Kind>(&statement.kind);
}

// Whether any of them is such a statement.
bool any_statement(const Body& body, const std::function<bool(const Statement&)>& is_it);
// Whether any of them is of one of these kinds.
template <class... Kinds>
bool has(const Body& body) {
  return any_statement(
      body, [](const Statement& it) { return (std::holds_alternative<Kinds>(it.kind) || ...); });
}

// Whether any module of any model is such a one.
bool any_module(const Program& program, const std::function<bool(const Module&)>& is_it);

// The body of a statement, or null.
const Body* body_of(const Statement& statement);

// In which an autocast block computes; none for other blocks.
std::optional<DType> autocast_dtype(const Block& block, const ZeroConfig& config);

// An upper bound for the forwards of an engine between two of its updates, and for how often one
// forward's contributions are added by backwards, each weighed by its head.
struct WindowBounds {
  std::int64_t forwards = 1;
  std::int64_t additions = 1;
};
WindowBounds window_bounds(const Program& program);

}  // namespace zeroproof::program
