#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/task_graph.h"
#include "zeroproof/internal/model/graph_snapshot.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// Which device the trace was recorded on: with several roots, a CUDA task's order is a race
// between the caller and the device thread (rule Q6).
enum class TraceDevice { cpu, cuda };

struct QueueMismatch {
  std::int64_t call = -1;
  std::string text;  // one line with the position, node ids and names
};

// matched + races + mismatched + unfinished == graph_tasks.
struct QueueReport {
  std::int64_t graph_tasks = 0;  // those with a graph that could be walked completely
  std::int64_t matched = 0;      // the derived order; of a failed task, the part that ran
  std::int64_t races = 0;        // legal, though another order than the derived one (Q6)
  std::int64_t mismatched = 0;
  std::int64_t unfinished = 0;     // no gt.end; what was recorded agrees
  std::int64_t opaque = 0;         // graphs that were not walked completely, skipped
  std::int64_t without_graph = 0;  // tasks that began without a graph record
  std::int64_t nodes = 0;          // executed nodes compared
  std::optional<QueueMismatch> first_mismatch;

  bool holds() const { return mismatched == 0; }
};

// The queue level of `zeroproof replay`: derives the node order of every recorded graph task with
// the ready-queue rules and compares it with the recorded node.exec events. Fed with the records
// of one trace in file order; keeps only the graphs of tasks that have not ended. Each task is
// derived on a queue of its own, also when it is nested in another.
class QueueLevel {
 public:
  explicit QueueLevel(TraceDevice device) : device_(device) {}

  void on_graph(const GraphSnapshot& snapshot);
  void on_event(const HookEvent& event);  // gt.begin, gt.end and node.exec; ignores all others

  // Once, after the last record. Tasks that are still open count as unfinished.
  QueueReport finish();

 private:
  struct Task {
    GraphSnapshot snapshot;
    GraphTaskId id;
    bool has_begun = false;
    std::vector<NodeId> executed;
  };
  enum class Ending { returned, failed, unfinished };

  void on_begin(const HookEvent& event);
  void on_node(const HookEvent& event);
  void on_end(const HookEvent& event);
  void judge(const Task& task, Ending ending);
  void compare(const Task& task, const TaskGraph& graph, Ending ending);
  void count_agreement(std::int64_t& kind, Ending ending);
  void mismatch(const Task& task, const std::string& what);

  TraceDevice device_;
  std::map<std::int64_t, Task> open_;  // by call
  QueueReport report_;
};

}  // namespace zeroproof
