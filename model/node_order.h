#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "model/task_graph.h"
#include "zeroproof/model/ids.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// The order in which PyTorch runs the nodes of one graph task on one ready queue that holds
// no other state: rules G3, E1, E3, X1 to X3, Q1 and Q2. The artificial root is left out.
// Linear in nodes and edges but for the heap; never recurses.
std::vector<NodeId> derive_node_order(const TaskGraph& graph);

// TaskGraph::make and the above.
Result<std::vector<NodeId>> derive_node_order(const GraphSnapshot& snapshot);

// Whether an order has to name every executed node or may stop early (a failed task).
enum class OrderExtent { whole, prefix };

// Where `order` stops being one that the edges alone allow, for tasks whose order is a documented
// race (rule Q6): the position of the first node that the task does not run, that ran before or
// that runs before a predecessor; order.size() when nodes are missing; nullopt when it is legal.
std::optional<std::size_t> find_illegal_position(const TaskGraph& graph,
                                                 std::span<const NodeId> order, OrderExtent extent);

inline bool is_legal_order(const TaskGraph& graph, std::span<const NodeId> order) {
  return !find_illegal_position(graph, order, OrderExtent::whole);
}

}  // namespace zeroproof
