#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/explorer.h"
#include "sim/hook_order/world.h"

namespace zeroproof::hook_order {

struct SearchOptions {
  bool is_reduced = true;
  bool stops_at_first = false;                                   // finding
  std::function<StopRequest()> should_stop = {};                 // asked now and then
  std::function<void(const ExploreProgress&)> on_progress = {};  // called before it is asked
};

// The shortest run that violates a property, of those that the search met.
struct Finding {
  Property property = Property::none;
  std::string explanation;
  std::vector<Move> moves;
};

struct SearchResult {
  bool has_exhausted = false;
  std::uint64_t states = 0;
  std::uint64_t transitions = 0;  // (state, move) pairs
  std::uint64_t executions = 0;   // of the engines, from their beginning
  std::uint64_t complete = 0;     // of them, those that came to their end
  std::uint64_t events = 0;       // seam calls and decisions, replayed ones included
  std::uint64_t store_bytes = 0;
  std::vector<Finding> findings;  // by property, at most one each
  std::string divergence;         // the engines are not deterministic; empty: they are
  bool has(Property property) const;
};

// Depth-first over all orders: the engines run again from their beginning for every branch, and a
// state that was met before ends an execution. With reduction of the ranks' own steps one rank's
// alone, and completions where no rank can go on: ranks touch each other in collectives only, and
// a completion does not matter to a host step without a race (lessons 8 and 9). What
// races is A3 in every order.
SearchResult search(World& world, const SearchOptions& options);

// Whether two moves that are possible now commute and leave each other possible, as far as the
// reduction relies on it.
bool are_independent(const World& world, Move left, Move right);

// Takes moves away as long as the rest still violates the property. Where a move is not possible
// any more, what is left is not a run.
Finding shortened(World& world, const Finding& finding);

}  // namespace zeroproof::hook_order
