#include "tests/model/slow_engine.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

namespace zeroproof::testing {
namespace {

// Stands for the artificial node of several roots (rule G3), which the snapshot does not have.
constexpr NodeId kArtificialRoot{-2};

const GraphNode& slow_node_of(const GraphSnapshot& graph, NodeId id) {
  for (const GraphNode& node : graph.nodes)
    if (node.id == id) return node;
  throw std::logic_error("an edge leads to a node that is not there");
}

std::vector<NodeId> targets_of(const GraphSnapshot& graph, NodeId id) {
  const auto& edges = id == kArtificialRoot ? graph.roots : slow_node_of(graph, id).next;
  std::vector<NodeId> targets;
  for (const auto& edge : edges)
    if (edge) targets.push_back(edge->node);
  return targets;
}

NodeId first_node(const GraphSnapshot& graph) {
  return graph.roots.size() == 1 ? graph.roots[0]->node : kArtificialRoot;
}

// All that a path of at least one edge leads to.
std::set<NodeId> behind(const GraphSnapshot& graph, NodeId start) {
  std::set<NodeId> found;
  std::vector<NodeId> open = targets_of(graph, start);
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!found.insert(id).second) continue;
    for (const NodeId next : targets_of(graph, id)) open.push_back(next);
  }
  return found;
}

std::set<NodeId> reachable(const GraphSnapshot& graph) {
  std::set<NodeId> nodes = behind(graph, first_node(graph));
  nodes.insert(first_node(graph));
  return nodes;
}

std::set<NodeId> input_nodes(const GraphSnapshot& graph) {
  std::set<NodeId> nodes;
  for (const auto& input : *graph.inputs)
    if (input) nodes.insert(*input);
  return nodes;
}

bool leads_to_an_input(const GraphSnapshot& graph, NodeId id) {
  const std::set<NodeId> inputs = input_nodes(graph);
  const std::set<NodeId> beyond = behind(graph, id);
  return std::any_of(beyond.begin(), beyond.end(), [&](NodeId n) { return inputs.contains(n); });
}

bool is_needed(const GraphSnapshot& graph, NodeId id) {
  if (!graph.inputs || leads_to_an_input(graph, id)) return true;
  return graph.accumulate && input_nodes(graph).contains(id);
}

struct Entry {
  std::size_t task = 0;
  NodeId node;
  int depth = 0;
  std::uint64_t sequence_nr = 0;
  bool is_less_urgent_than(const Entry& other) const {
    return std::pair(depth, sequence_nr) < std::pair(other.depth, other.sequence_nr);
  }
};

// The binary heap of the textbook, with the two details of libstdc++ that ties depend on: the last
// element is lifted out, the hole at the top sinks to the very bottom along the larger children
// (the right one when they are equal), and the lifted element rises from there.
class Heap {
 public:
  bool is_empty() const { return entries_.empty(); }
  const std::vector<Entry>& entries() const { return entries_; }

  void push(const Entry& entry) {
    entries_.push_back(entry);
    rise(entries_.size() - 1);
  }

  Entry pop() {
    const Entry top = entries_.front();
    const Entry lifted = entries_.back();
    entries_.pop_back();
    if (entries_.empty()) return top;
    std::size_t hole = 0;
    while (2 * hole + 1 < entries_.size()) {
      std::size_t child = 2 * hole + 2;
      if (child == entries_.size() || entries_[child].is_less_urgent_than(entries_[child - 1]))
        --child;
      entries_[hole] = entries_[child];
      hole = child;
    }
    entries_[hole] = lifted;
    rise(hole);
    return top;
  }

 private:
  void rise(std::size_t at) {
    while (at > 0 && entries_[(at - 1) / 2].is_less_urgent_than(entries_[at])) {
      std::swap(entries_[(at - 1) / 2], entries_[at]);
      at = (at - 1) / 2;
    }
  }

  std::vector<Entry> entries_;
};

// The queue of one thread, and the tasks that it works on.
class SlowEngine {
 public:
  explicit SlowEngine(const std::vector<SlowTask>& tasks) : tasks_(tasks) {}

  void run(std::size_t task, int depth) {
    const GraphSnapshot& graph = tasks_[task].graph;
    std::map<NodeId, std::size_t>& missing = missing_[task];
    for (const NodeId id : reachable(graph))
      for (const NodeId target : targets_of(graph, id)) ++missing[target];
    std::set<NodeId> left = nodes_reached(graph);
    reached_[task] = left;
    left.insert(first_node(graph));
    push(task, first_node(graph), depth);
    while (!left.empty()) {
      const Entry entry = pop();
      if (entry.task != task) throw std::logic_error("an outer task ran in a nested one");
      left.erase(entry.node);
      evaluate(entry);
    }
  }

  std::vector<SlowStep> steps;

 private:
  void push(std::size_t task, NodeId id, int depth) {
    const auto& graph = tasks_[task].graph;
    heap_.push({task, id, depth, id == kArtificialRoot ? 0 : slow_node_of(graph, id).sequence_nr});
  }

  // No entry may be more urgent than what the heap gives: a scan of the whole list says so.
  Entry pop() {
    if (heap_.is_empty()) throw std::logic_error("a task waits for a node that is never ready");
    const Entry entry = heap_.pop();
    for (const Entry& other : heap_.entries())
      if (entry.is_less_urgent_than(other)) throw std::logic_error("the heap is broken");
    return entry;
  }

  void evaluate(const Entry& entry) {
    const SlowTask& task = tasks_[entry.task];
    if (const auto nested = task.starts.find(entry.node); nested != task.starts.end())
      for (const std::size_t each : nested->second) run(each, entry.depth + 1);
    if (!is_needed(task.graph, entry.node)) return;
    if (entry.node != kArtificialRoot) steps.push_back({entry.task, entry.node});
    for (const NodeId target : targets_of(task.graph, entry.node))
      if (--missing_[entry.task][target] == 0 && reached_[entry.task].contains(target))
        push(entry.task, target, entry.depth);
  }

  const std::vector<SlowTask>& tasks_;
  std::map<std::size_t, std::map<NodeId, std::size_t>> missing_;
  std::map<std::size_t, std::set<NodeId>> reached_;
  Heap heap_;
};

}  // namespace

std::set<NodeId> nodes_run(const GraphSnapshot& graph) {
  std::set<NodeId> nodes;
  for (const NodeId id : reachable(graph))
    if (id != kArtificialRoot && is_needed(graph, id)) nodes.insert(id);
  return nodes;
}

std::set<NodeId> nodes_reached(const GraphSnapshot& graph) {
  std::set<NodeId> nodes = nodes_run(graph);
  if (graph.inputs)
    for (const NodeId id : input_nodes(graph))
      if (reachable(graph).contains(id)) nodes.insert(id);
  if (first_node(graph) != kArtificialRoot) nodes.insert(first_node(graph));
  return nodes;
}

std::set<NodeId> nodes_visited(const GraphSnapshot& graph) {
  return behind(graph, first_node(graph));
}

std::vector<SlowStep> run_slowly(const std::vector<SlowTask>& tasks, std::size_t outermost) {
  SlowEngine engine(tasks);
  engine.run(outermost, 0);
  return engine.steps;
}

Poset poset_of(const GraphSnapshot& graph, std::vector<NodeId>& ids) {
  const std::set<NodeId> reached = nodes_reached(graph);
  ids.assign(reached.begin(), reached.end());
  std::vector<ElementSet> predecessors(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t j = 0; j < ids.size(); ++j) {
      const std::vector<NodeId> targets = targets_of(graph, ids[i]);
      if (std::find(targets.begin(), targets.end(), ids[j]) != targets.end())
        predecessors[j] |= set_of(i);
    }
  return Poset::make(predecessors).value();
}

}  // namespace zeroproof::testing
