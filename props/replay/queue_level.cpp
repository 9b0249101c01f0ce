#include "props/replay/queue_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/node_order.h"

namespace zeroproof {
namespace {

std::string describe(const GraphSnapshot& snapshot, NodeId id) {
  const auto node = std::find_if(snapshot.nodes.begin(), snapshot.nodes.end(),
                                 [&](const GraphNode& candidate) { return candidate.id == id; });
  if (node == snapshot.nodes.end()) return fmt::format("node {}, not in the graph", id.value);
  if (node->param.empty()) return fmt::format("node {} ({})", id.value, node->name);
  return fmt::format("node {} ({} of {})", id.value, node->name, node->param);
}

std::string describe_at(const GraphSnapshot& snapshot, const std::vector<NodeId>& order,
                        std::size_t position) {
  return position < order.size() ? describe(snapshot, order[position]) : "the end of the task";
}

std::size_t first_other_node(const std::vector<NodeId>& a, const std::vector<NodeId>& b) {
  const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(at.first - a.begin());
}

}  // namespace

void QueueLevel::on_graph(const GraphSnapshot& snapshot) {
  ++(snapshot.is_opaque ? report_.opaque : report_.graph_tasks);
  Task task;
  task.snapshot = snapshot;
  const auto [first, is_new] = open_.try_emplace(snapshot.call, std::move(task));
  if (!is_new && !snapshot.is_opaque)
    mismatch(first->second, "a second graph record before the first one's task ended");
}

void QueueLevel::on_event(const HookEvent& event) {
  switch (event.kind) {
    case EventKind::gt_begin:
      return on_begin(event);
    case EventKind::node_exec:
      return on_node(event);
    case EventKind::gt_end:
      return on_end(event);
    default:
      return;
  }
}

void QueueLevel::on_begin(const HookEvent& event) {
  const auto at = open_.find(event.call);
  if (at == open_.end()) {
    ++report_.without_graph;
    return;
  }
  at->second.has_begun = true;
  at->second.id = event.graph_task;
}

// A nested task can run a node that an outer snapshot watches: only the task's own count.
void QueueLevel::on_node(const HookEvent& event) {
  const auto at = open_.find(event.call);
  if (at == open_.end() || !at->second.has_begun || at->second.id != event.graph_task) return;
  at->second.executed.push_back(NodeId{event.node});
}

void QueueLevel::on_end(const HookEvent& event) {
  const auto at = open_.find(event.call);
  if (at == open_.end()) return;
  judge(at->second, event.is_exceptional() ? Ending::failed : Ending::returned);
  open_.erase(at);
}

QueueReport QueueLevel::finish() {
  for (const auto& [call, task] : open_) judge(task, Ending::unfinished);
  open_.clear();
  return report_;
}

void QueueLevel::judge(const Task& task, Ending ending) {
  if (task.snapshot.is_opaque) return;
  const auto graph = TaskGraph::make(task.snapshot);
  if (graph)
    compare(task, *graph, ending);
  else
    mismatch(task, graph.error().text);
}

void QueueLevel::compare(const Task& task, const TaskGraph& graph, Ending ending) {
  const std::vector<NodeId> derived = derive_node_order(graph);
  report_.nodes += static_cast<std::int64_t>(task.executed.size());
  const std::size_t at = first_other_node(derived, task.executed);
  const bool may_stop_early = ending != Ending::returned;
  const bool is_agreed = at == task.executed.size() && (at == derived.size() || may_stop_early);
  if (is_agreed) return count_agreement(report_.matched, ending);

  std::string what = fmt::format(
      "position {}: derived {}, recorded {}; {} nodes derived, {} recorded", at,
      describe_at(task.snapshot, derived, at), describe_at(task.snapshot, task.executed, at),
      derived.size(), task.executed.size());
  if (device_ == TraceDevice::cuda && graph.is_artificial(graph.root())) {
    const auto illegal = find_illegal_position(
        graph, task.executed, may_stop_early ? OrderExtent::prefix : OrderExtent::whole);
    if (!illegal) return count_agreement(report_.races, ending);
    what += fmt::format("; no order of the race allows position {}: {}", *illegal,
                        describe_at(task.snapshot, task.executed, *illegal));
  }
  mismatch(task, what);
}

void QueueLevel::count_agreement(std::int64_t& kind, Ending ending) {
  ++(ending == Ending::unfinished ? report_.unfinished : kind);
}

void QueueLevel::mismatch(const Task& task, const std::string& what) {
  ++report_.mismatched;
  if (report_.first_mismatch) return;
  const std::int64_t call = task.snapshot.call;
  report_.first_mismatch =
      QueueMismatch{call, fmt::format("graph task of call {}, {}", call, what)};
}

}  // namespace zeroproof
