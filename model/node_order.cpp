#include "model/node_order.h"

#include "zeroproof/internal/model/ready_queue.h"

namespace zeroproof {
namespace {

struct ReadyNode {
  TaskNode node;
  std::uint64_t sequence_nr;
  ReadyPriority priority() const { return {0, sequence_nr}; }
};

// Rule E3: counters fall in edge order; a node without a delivered gradient is never pushed.
class Traversal {
 public:
  explicit Traversal(const TaskGraph& graph) : graph_(graph), missing_(graph.dependencies()) {
    push(graph.root());
  }

  std::vector<NodeId> run() {
    std::vector<NodeId> order;
    while (!ready_.is_empty()) {
      const TaskNode node = ready_.pop().node;
      if (!graph_.is_executed(node)) continue;
      if (!graph_.is_artificial(node)) order.push_back(graph_.id(node));
      for (const TaskNode target : graph_.next(node)) deliver_to(target);
    }
    return order;
  }

 private:
  void deliver_to(TaskNode target) {
    const bool is_ready = --missing_[target.value] == 0;
    if (is_ready && graph_.fate(target) >= NodeFate::captured) push(target);
  }

  void push(TaskNode node) { ready_.push({node, graph_.sequence_nr(node)}); }

  const TaskGraph& graph_;
  std::vector<std::uint32_t> missing_;
  ReadyQueue<ReadyNode> ready_;
};

// Runs nodes in any order that is asked for, as long as the edges allow it.
class FreeTraversal {
 public:
  explicit FreeTraversal(const TaskGraph& graph)
      : graph_(graph), missing_(graph.dependencies()), has_run_(graph.size(), false) {
    if (graph_.is_artificial(graph_.root())) run(graph_.root());
  }

  bool try_run(NodeId id) {
    const auto node = graph_.find(id);
    if (!node || !graph_.is_executed(*node)) return false;
    if (has_run_[node->value] || missing_[node->value] != 0) return false;
    run(*node);
    return true;
  }

  bool is_complete() const {
    for (std::uint32_t i = 0; i < graph_.size(); ++i)
      if (graph_.is_executed(TaskNode{i}) && !has_run_[i]) return false;
    return true;
  }

 private:
  void run(TaskNode node) {
    has_run_[node.value] = true;
    for (const TaskNode target : graph_.next(node)) --missing_[target.value];
  }

  const TaskGraph& graph_;
  std::vector<std::uint32_t> missing_;
  std::vector<bool> has_run_;
};

}  // namespace

std::vector<NodeId> derive_node_order(const TaskGraph& graph) {
  return Traversal(graph).run();
}

Result<std::vector<NodeId>> derive_node_order(const GraphSnapshot& snapshot) {
  return TaskGraph::make(snapshot).map(
      [](const TaskGraph& graph) { return derive_node_order(graph); });
}

std::optional<std::size_t> find_illegal_position(const TaskGraph& graph,
                                                 std::span<const NodeId> order,
                                                 OrderExtent extent) {
  FreeTraversal traversal(graph);
  for (std::size_t i = 0; i < order.size(); ++i)
    if (!traversal.try_run(order[i])) return i;
  if (extent == OrderExtent::whole && !traversal.is_complete()) return order.size();
  return std::nullopt;
}

}  // namespace zeroproof
