#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "model/linear_extensions.h"
#include "zeroproof/internal/model/graph_snapshot.h"

namespace zeroproof::testing {

// The queue rules once more (docs/spec/autograd.md Q1, Q2, E1, E3, X1 to X3, R2), as plainly as
// possible and without a line of the engine: the reference that the faithful order is held to.

// One graph task, and the tasks that hooks of its nodes start: reaching node `n` runs the tasks
// `starts.at(n)` (indices into the list of all tasks), one after the other, before the node.
struct SlowTask {
  GraphSnapshot graph;
  std::map<NodeId, std::vector<std::size_t>> starts = {};
};

struct SlowStep {
  std::size_t task = 0;
  NodeId node;
  friend auto operator<=>(const SlowStep&, const SlowStep&) = default;
};

// What runs, in order. Starts with the outermost task. Nodes that are only captured are reached,
// but do not run, and are not listed; nor is the artificial node of several roots.
std::vector<SlowStep> run_slowly(const std::vector<SlowTask>& tasks, std::size_t outermost = 0);

// Nodes that the task takes from its queue: all that is reachable, or what `inputs` leaves.
std::set<NodeId> nodes_reached(const GraphSnapshot& graph);
// Of them, those that run and are not only captured (rules X2, X3).
std::set<NodeId> nodes_run(const GraphSnapshot& graph);
// Targets of the edges that the task counts (rule E1): what _will_engine_execute_node knows.
std::set<NodeId> nodes_visited(const GraphSnapshot& graph);

// What must come before what among the reached nodes; `ids` receives which element is which node.
Poset poset_of(const GraphSnapshot& graph, std::vector<NodeId>& ids);

}  // namespace zeroproof::testing
