#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "zeroproof/internal/model/graph_snapshot.h"
#include "zeroproof/model/ids.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// A node of one TaskGraph: 0, 1, ... in the order of the snapshot.
using TaskNode = StrongId<struct TaskNodeTag, std::uint32_t, 0xffffffffU>;

// What a graph task does with a node (rules X1 to X3).
enum class NodeFate : std::uint8_t {
  unreached,  // no path from the roots leads to it
  dropped,    // reached, but what is delivered to it is thrown away
  captured,   // passes through the ready queue, gives its gradient to the caller, does not run
  executed,
};

// One graph task before it starts: a checked snapshot in dense form with the dependency counts
// of rule E1, the artificial root of rule G3 and the fates of rules X1 to X3. Rule E2 only saves
// traversal: a node below every input's topological number leads to no input.
// Immutable; independent of the snapshot it was made from.
class TaskGraph {
 public:
  // Error (unreadable) for a graph that no backward can have: a root, edge or input that names an
  // unknown node, a null root, no root, an empty inputs list, an id used twice, a cycle.
  static Result<TaskGraph> make(const GraphSnapshot& snapshot);

  // Nodes of the snapshot and, with several roots, the artificial root.
  std::size_t size() const { return sequence_nrs_.size(); }

  // Where the task starts. The artificial root has no id in the snapshot.
  TaskNode root() const { return root_; }
  bool is_artificial(TaskNode node) const { return node.value >= ids_.size(); }

  NodeId id(TaskNode node) const { return ids_[node.value]; }
  std::optional<TaskNode> find(NodeId id) const;

  NodeFate fate(TaskNode node) const { return fates_[node.value]; }
  bool is_executed(TaskNode node) const { return fate(node) == NodeFate::executed; }
  std::uint64_t sequence_nr(TaskNode node) const { return sequence_nrs_[node.value]; }

  // Targets of the valid edges, in edge order; one that is there twice is delivered to twice.
  std::span<const TaskNode> next(TaskNode node) const {
    const std::uint32_t begin = edge_begins_[node.value];
    return {edges_.data() + begin, edge_begins_[node.value + 1] - begin};
  }

  // Incoming edges of each node, counted over what the root reaches.
  const std::vector<std::uint32_t>& dependencies() const { return dependencies_; }

 private:
  TaskGraph() = default;

  Result<void> index_nodes(const GraphSnapshot& snapshot);
  Result<void> link_nodes(const GraphSnapshot& snapshot);
  Result<void> link_roots(const GraphSnapshot& snapshot);
  Result<std::vector<bool>> mark_inputs(const GraphSnapshot& snapshot) const;
  std::size_t count_dependencies();
  std::vector<TaskNode> topological_order() const;
  void decide_fates(const std::vector<TaskNode>& order, const std::vector<bool>& is_input,
                    bool accumulate);

  std::vector<NodeId> ids_;
  std::vector<std::pair<NodeId, TaskNode>> index_;  // sorted; empty when ids are positions
  std::vector<std::uint64_t> sequence_nrs_;
  std::vector<std::uint32_t> edge_begins_;
  std::vector<TaskNode> edges_;
  std::vector<std::uint32_t> dependencies_;
  std::vector<NodeFate> fates_;
  TaskNode root_;
};

}  // namespace zeroproof
