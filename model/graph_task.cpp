#include "zeroproof/internal/model/graph_task.h"

#include <utility>

namespace zeroproof {

// The mark of another task that is under way stays: it is still needed there.
GraphTask::NodeState& GraphTask::state_of(Node& node) {
  if (NodeState* state = find(node)) return *state;
  const auto index = static_cast<std::uint32_t>(states_.size());
  if (node.task_slot.task.is_none() || is_alone_) {
    node.task_slot = {id(), index};
  } else {
    shared_nodes_[&node] = index;
  }
  return states_.emplace_back();
}

GraphTask::NodeState* GraphTask::find_shared(const Node& node) {
  const auto at = shared_nodes_.find(&node);
  return at == shared_nodes_.end() ? nullptr : &states_[at->second];
}

// The root counts as visited only when an edge leads back to it.
void GraphTask::count_dependencies(std::shared_ptr<Node> root) {
  root_ = std::move(root);
  state_of(*root_);
  std::vector<Node*> open = {root_.get()};
  while (!open.empty()) {
    const Node& node = *open.back();
    open.pop_back();
    for (const Edge& edge : node.next_edges()) {
      if (!edge.is_valid()) continue;
      NodeState& next = state_of(*edge.node);
      ++next.missing;
      if (!std::exchange(next.is_visited, true)) open.push_back(edge.node.get());
    }
  }
}

void GraphTask::limit_to_needed(const std::vector<Edge>& edges) {
  is_limited_ = true;
  for (const Edge& edge : edges)
    if (NodeState* state = edge.is_valid() ? find(*edge.node) : nullptr) state->is_needed = true;
  mark_paths();
}

void GraphTask::limit_to_captured(const std::vector<Edge>& edges) {
  is_limited_ = true;
  captured_.resize(edges.size());
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (!edges[i].is_valid()) continue;
    NodeState* state = find(*edges[i].node);
    if (!state) continue;
    state->is_captured = true;
    captures_[edges[i].node.get()].push_back({edges[i].slot, i});
  }
  mark_paths();
}

// Depth-first; a node is settled after all that it leads to.
void GraphTask::mark_paths() {
  struct Visit {
    Node* node;
    std::size_t next_edge = 0;
  };
  std::vector<char> is_seen(states_.size(), 0);
  const auto see = [&](Node& node) {
    const auto index = static_cast<std::size_t>(find(node) - states_.data());
    return std::exchange(is_seen[index], 1) == 0;
  };
  std::vector<Visit> path = {{root_.get()}};
  see(*root_);
  while (!path.empty()) {
    Visit& visit = path.back();
    const auto& edges = visit.node->next_edges();
    if (visit.next_edge == edges.size()) {
      NodeState& state = *find(*visit.node);
      for (const Edge& edge : edges)
        if (edge.is_valid() && find(*edge.node)->is_executable()) state.is_needed = true;
      path.pop_back();
      continue;
    }
    const Edge& edge = edges[visit.next_edge++];
    if (edge.is_valid() && see(*edge.node)) path.push_back({edge.node.get()});
  }
}

}  // namespace zeroproof
