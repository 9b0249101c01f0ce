#include "model/task_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace zeroproof {
namespace {

tl::unexpected<Error> damaged(const GraphSnapshot& snapshot, const std::string& what) {
  return fail(ErrorCode::unreadable,
              fmt::format("graph of call {}: {}; the record is damaged, record the trace again",
                          snapshot.call, what));
}

TaskNode task_node(std::size_t position) {
  return {static_cast<std::uint32_t>(position)};
}

bool are_ids_positions(const std::vector<NodeId>& ids) {
  std::int64_t position = 0;
  return std::all_of(ids.begin(), ids.end(), [&](NodeId id) { return id.value == position++; });
}

}  // namespace

Result<TaskGraph> TaskGraph::make(const GraphSnapshot& snapshot) {
  TaskGraph graph;
  auto linked = graph.index_nodes(snapshot)
                    .and_then([&] { return graph.link_nodes(snapshot); })
                    .and_then([&] { return graph.link_roots(snapshot); });
  if (!linked) return tl::unexpected(std::move(linked.error()));
  const auto is_input = graph.mark_inputs(snapshot);
  if (!is_input) return tl::unexpected(is_input.error());

  const std::size_t reached = graph.count_dependencies();
  const std::vector<TaskNode> order = graph.topological_order();
  if (order.size() != reached)
    return damaged(snapshot, fmt::format("{} of its {} reachable nodes lie on or after a cycle",
                                         reached - order.size(), reached));
  graph.decide_fates(order, *is_input, snapshot.accumulate);
  return graph;
}

Result<void> TaskGraph::index_nodes(const GraphSnapshot& snapshot) {
  for (const GraphNode& node : snapshot.nodes) {
    ids_.push_back(node.id);
    sequence_nrs_.push_back(node.sequence_nr);
  }
  if (are_ids_positions(ids_)) return {};
  for (std::size_t i = 0; i < ids_.size(); ++i) index_.emplace_back(ids_[i], task_node(i));
  std::sort(index_.begin(), index_.end());
  const auto twice =
      std::adjacent_find(index_.begin(), index_.end(),
                         [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice == index_.end()) return {};
  return damaged(snapshot, fmt::format("two nodes have the id {}", twice->first.value));
}

std::optional<TaskNode> TaskGraph::find(NodeId id) const {
  if (index_.empty()) {
    if (id.value < 0 || static_cast<std::size_t>(id.value) >= ids_.size()) return std::nullopt;
    return task_node(static_cast<std::size_t>(id.value));
  }
  const auto at = std::lower_bound(index_.begin(), index_.end(), id,
                                   [](const auto& entry, NodeId key) { return entry.first < key; });
  if (at == index_.end() || at->first != id) return std::nullopt;
  return at->second;
}

Result<void> TaskGraph::link_nodes(const GraphSnapshot& snapshot) {
  edge_begins_.push_back(0);
  for (const GraphNode& node : snapshot.nodes) {
    for (const auto& edge : node.next) {
      if (!edge) continue;
      const auto target = find(edge->node);
      if (!target)
        return damaged(snapshot, fmt::format("node {} has an edge to node {}, which it lacks",
                                             node.id.value, edge->node.value));
      edges_.push_back(*target);
    }
    edge_begins_.push_back(static_cast<std::uint32_t>(edges_.size()));
  }
  return {};
}

Result<void> TaskGraph::link_roots(const GraphSnapshot& snapshot) {
  if (snapshot.roots.empty()) return damaged(snapshot, "it has no root");
  std::vector<TaskNode> roots;
  for (const auto& root : snapshot.roots) {
    if (!root)
      return damaged(snapshot, fmt::format("root {} is null, but the graph is not marked opaque",
                                           roots.size()));
    const auto node = find(root->node);
    if (!node)
      return damaged(snapshot, fmt::format("root {} is node {}, which it lacks", roots.size(),
                                           root->node.value));
    roots.push_back(*node);
  }
  root_ = roots.front();
  if (roots.size() == 1) return {};
  // Its number is never compared: it is alone in the queue.
  root_ = task_node(size());
  sequence_nrs_.push_back(kAccumulateGradSequence);
  edges_.insert(edges_.end(), roots.begin(), roots.end());
  edge_begins_.push_back(static_cast<std::uint32_t>(edges_.size()));
  return {};
}

// Empty: no inputs were given, everything runs. A null input is a leaf outside the graph.
Result<std::vector<bool>> TaskGraph::mark_inputs(const GraphSnapshot& snapshot) const {
  std::vector<bool> is_input;
  if (!snapshot.inputs) return is_input;
  if (snapshot.inputs->empty()) return damaged(snapshot, "its list of inputs is empty");
  is_input.resize(size(), false);
  for (const auto& input : *snapshot.inputs) {
    if (!input) continue;
    const auto node = find(*input);
    if (!node) return damaged(snapshot, fmt::format("input node {} is unknown", input->value));
    is_input[node->value] = true;
  }
  return is_input;
}

// Rule E1: every edge counts, a node is expanded once. Returns the number of reached nodes.
std::size_t TaskGraph::count_dependencies() {
  dependencies_.assign(size(), 0);
  std::vector<bool> is_reached(size(), false);
  std::vector<TaskNode> open{root_};
  is_reached[root_.value] = true;
  std::size_t reached = 1;
  while (!open.empty()) {
    const TaskNode node = open.back();
    open.pop_back();
    for (const TaskNode target : next(node)) {
      ++dependencies_[target.value];
      if (is_reached[target.value]) continue;
      is_reached[target.value] = true;
      open.push_back(target);
      ++reached;
    }
  }
  return reached;
}

// Reached nodes, each after its predecessors; those on a cycle, or reached from one, are missing.
std::vector<TaskNode> TaskGraph::topological_order() const {
  std::vector<std::uint32_t> missing = dependencies_;
  std::vector<TaskNode> order;
  if (missing[root_.value] == 0) order.push_back(root_);
  for (std::size_t done = 0; done < order.size(); ++done) {
    for (const TaskNode target : next(order[done]))
      if (--missing[target.value] == 0) order.push_back(target);
  }
  return order;
}

// Rules X1 and X2, against the order, so that the fates of a node's targets are known.
void TaskGraph::decide_fates(const std::vector<TaskNode>& order, const std::vector<bool>& is_input,
                             bool accumulate) {
  fates_.assign(size(), NodeFate::unreached);
  const bool runs_all = is_input.empty();
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    const auto targets = next(*at);
    const bool is_asked_for = !runs_all && is_input[at->value];
    const bool leads_to_input = std::any_of(targets.begin(), targets.end(), [&](TaskNode target) {
      return fate(target) >= NodeFate::captured;
    });
    NodeFate& decided = fates_[at->value];
    if (runs_all || leads_to_input || (is_asked_for && accumulate))
      decided = NodeFate::executed;
    else
      decided = is_asked_for ? NodeFate::captured : NodeFate::dropped;
  }
}

}  // namespace zeroproof
