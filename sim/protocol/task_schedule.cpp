#include "sim/protocol/task_schedule.h"

#include <algorithm>
#include <set>

#include "zeroproof/internal/model/graph_snapshot.h"
#include "zeroproof/internal/model/ready_queue.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

std::vector<std::vector<std::size_t>> successors_of(const GraphTaskProgram& task) {
  std::vector<std::vector<std::size_t>> successors;
  for (const ProtocolNode& node : task.nodes) successors.push_back(node.next);
  return successors;
}

// The first visible nodes reached from `from` through ops alone.
std::set<std::size_t> visible_successors(const GraphTaskProgram& task, std::size_t from) {
  std::set<std::size_t> found;
  std::set<std::size_t> seen;
  std::vector<std::size_t> open(task.nodes[from].next);
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    if (task.nodes[node].kind != NodeKind::op) {
      found.insert(node);
    } else {
      open.insert(open.end(), task.nodes[node].next.begin(), task.nodes[node].next.end());
    }
  }
  return found;
}

struct ReadyNode {
  std::size_t node = 0;
  std::uint64_t sequence_nr = 0;
  ReadyPriority priority() const { return {.sequence_nr = sequence_nr}; }
};

// PyTorch's order: one ready queue, every edge counted (E1), pushed in edge order (E3).
class FaithfulSchedule final : public TaskSchedule {
 public:
  explicit FaithfulSchedule(const GraphTaskProgram& task)
      : task_(task), successors_(successors_of(task)), waiting_(task.nodes.size(), 0) {
    for (const auto& next : successors_) {
      for (const std::size_t node : next) ++waiting_[node];
    }
    push(0);
  }

  bool is_done() const override { return queue_.is_empty(); }
  std::vector<std::size_t> ready_nodes() const override { return {queue_.top().node}; }

  void run(std::size_t node) override {
    queue_.pop();
    for (const std::size_t next : successors_[node]) {
      if (--waiting_[next] == 0) push(next);
    }
  }

  // The order is fixed, so the number of nodes left says everything.
  void append_state(std::string& bytes) const override {
    bytes.push_back('f');
    for (const std::size_t count : waiting_) append_bytes(bytes, count);
  }

 private:
  void push(std::size_t node) {
    const std::uint64_t sequence_nr = task_.nodes[node].kind == NodeKind::accumulate
                                          ? kAccumulateGradSequence
                                          : task_.nodes[node].sequence_nr;
    queue_.push({.node = node, .sequence_nr = sequence_nr});
  }

  const GraphTaskProgram& task_;
  std::vector<std::vector<std::size_t>> successors_;
  std::vector<std::size_t> waiting_;  // edges not delivered yet
  ReadyQueue<ReadyNode> queue_;
};

// Every linear extension of the visible nodes. Ops have no visible effect, so they run when
// needed and are no choice of their own.
class TopologicalSchedule final : public TaskSchedule {
 public:
  explicit TopologicalSchedule(const GraphTaskProgram& task)
      : successors_(task.nodes.size()), waiting_(task.nodes.size(), 0) {
    std::vector<bool> is_visible(task.nodes.size());
    for (std::size_t node = 0; node < task.nodes.size(); ++node) {
      is_visible[node] = task.nodes[node].kind != NodeKind::op;
      if (!is_visible[node]) continue;
      for (const std::size_t next : visible_successors(task, node)) {
        successors_[node].push_back(next);
        ++waiting_[next];
      }
    }
    for (std::size_t node = 0; node < task.nodes.size(); ++node) {
      if (is_visible[node] && waiting_[node] == 0) ready_.push_back(node);
    }
  }

  bool is_done() const override { return ready_.empty(); }
  std::vector<std::size_t> ready_nodes() const override { return ready_; }

  void run(std::size_t node) override {
    ready_.erase(std::find(ready_.begin(), ready_.end(), node));
    for (const std::size_t next : successors_[node]) {
      if (--waiting_[next] == 0) {
        ready_.insert(std::lower_bound(ready_.begin(), ready_.end(), next), next);
      }
    }
  }

  void append_state(std::string& bytes) const override {
    bytes.push_back('t');
    for (const std::size_t node : ready_) append_bytes(bytes, node);
    bytes.push_back('/');
    for (const std::size_t count : waiting_) append_bytes(bytes, count);
  }

 private:
  std::vector<std::vector<std::size_t>> successors_;
  std::vector<std::size_t> waiting_;  // visible predecessors left
  std::vector<std::size_t> ready_;    // by node index, so that option numbers mean the same
};

}  // namespace

std::unique_ptr<TaskSchedule> make_task_schedule(const GraphTaskProgram& task,
                                                 OrderModel order_model) {
  if (order_model == OrderModel::faithful) return std::make_unique<FaithfulSchedule>(task);
  return std::make_unique<TopologicalSchedule>(task);
}

}  // namespace zeroproof
