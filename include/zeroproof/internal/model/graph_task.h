#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "zeroproof/internal/model/local_state.h"
#include "zeroproof/internal/model/node.h"
#include "zeroproof/internal/model/ready_queue.h"
#include "zeroproof/model/ids.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

class GraphTask;

// A node that has everything it waits for; its gradients wait in the task, which owns the graph.
struct NodeTask {
  std::weak_ptr<GraphTask> task;
  Node* node = nullptr;  // valid while the task is
  std::uint64_t sequence_nr = 0;
  std::int32_t reentrant_depth = 0;

  ReadyPriority priority() const {
    if (task.expired()) return ReadyPriority::orphan(sequence_nr);
    return {reentrant_depth, sequence_nr};
  }
};

// One call of backward() or grad() while it runs (rule G2): what it waits for and has gathered.
class GraphTask {
 public:
  using Queue = ReadyQueue<NodeTask>;

  struct Options {
    GraphTaskId id;
    bool keeps_graph = false;
    bool is_multithreaded = true;  // false: everything runs on the caller (rule Q4)
    std::int32_t reentrant_depth = 0;
    LocalState local;                         // docs/spec/autograd.md 15; grad mode = create_graph
    std::vector<StreamIndex> caller_streams;  // for its callbacks (rule C2)
    std::shared_ptr<Queue> cpu_queue;         // of the caller (rule Q3)
  };
  struct Capture {
    std::uint32_t slot;
    std::size_t output;  // index into captured()
  };
  struct NodeState {
    std::uint32_t missing = 0;  // deliveries still to come (rule E1)
    bool is_visited = false;    // some edge of the task leads here
    bool is_needed = false;     // rule X2
    bool is_captured = false;   // see captures()
    bool has_grads = false;
    TensorList grads;  // delivered so far
    bool is_executable() const { return is_needed || is_captured; }
  };

  // `is_alone`: no other task of the process is under way, so marks on nodes are left-overs.
  GraphTask(Options options, bool is_alone) : options_(std::move(options)), is_alone_(is_alone) {}

  GraphTaskId id() const { return options_.id; }
  const Options& options() const { return options_; }

  // Grad mode of everything it runs: create_graph.
  void set_grad_enabled(bool is_enabled) { options_.local.is_grad_enabled = is_enabled; }

  // Takes the graph below `root` and counts what every node of it waits for (rule E1).
  void count_dependencies(std::shared_ptr<Node> root);
  // The task runs only what leads to the edges (rules X1, X2); an invalid one is unreachable.
  void limit_to_needed(const std::vector<Edge>& edges);
  void limit_to_captured(const std::vector<Edge>& edges);
  bool is_limited() const { return is_limited_; }

  // Null for a node that the task does not reach.
  NodeState* find(const Node& node) {
    if (node.task_slot.task == id()) return &states_[node.task_slot.index];
    return shared_nodes_.empty() ? nullptr : find_shared(node);
  }
  const NodeState* find(const Node& node) const { return const_cast<GraphTask*>(this)->find(node); }

  // Of a node whose state says is_captured.
  const std::vector<Capture>& captures(const Node& node) const { return captures_.at(&node); }

  std::vector<std::function<void()>>& callbacks() { return callbacks_; }
  TensorList& captured() { return captured_; }

  // Rule G5. A task with an error is complete at once (rule F1).
  std::int64_t outstanding = 0;
  bool is_finished = false;
  std::exception_ptr error;
  bool is_complete() const { return is_finished || error != nullptr; }

 private:
  NodeState& state_of(Node& node);
  NodeState* find_shared(const Node& node);
  void mark_paths();

  std::shared_ptr<Node> root_;
  Options options_;
  bool is_alone_;
  bool is_limited_ = false;
  std::vector<NodeState> states_;
  // Nodes that another task has its mark on: leaves that outer and nested tasks share.
  std::map<const Node*, std::uint32_t> shared_nodes_;
  std::map<const Node*, std::vector<Capture>> captures_;
  std::vector<std::function<void()>> callbacks_;
  TensorList captured_;
};

}  // namespace zeroproof
