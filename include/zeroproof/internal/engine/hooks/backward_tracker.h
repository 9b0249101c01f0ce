#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "zeroproof/model/ids.h"

namespace zeroproof {

// How engine.backward marks that it runs. Releases of DeepSpeed differ in it.
enum class RunningMark {
  left_by_exception,  // a flag, set and cleared without a finally
  restored,           // a flag, cleared in every exit: #8135, the branch of #8245
  counted,            // a count of calls, each taken back in every exit: 0.19.6
};

// What one engine knows about running backwards: its open graph tasks, its open forwards, and its
// calls of engine.backward. The host reports each event in one place; the hook policy, the engine
// and the stages only read. Plain data. Not thread-safe.
class BackwardTracker {
 public:
  // How a graph task was started.
  struct TaskOptions {
    bool keeps_graph = false;   // retain_graph
    bool is_transform = false;  // by a function transform: the hook policy does not see it
  };

  struct OpenTask {
    GraphTaskId id;
    TaskOptions options;
    bool starts_in_forward = false;  // a forward of this engine started it
    bool is_inside_forward = false;  // or a task around it
    bool has_prologue = false;       // one ran in it, inside it, or before in the task around it
  };

  explicit BackwardTracker(RunningMark mark = RunningMark::restored) : running_mark_(mark) {}

  // The mark of the policy that the host runs. Before the first backward.
  void set_running_mark(RunningMark mark) { running_mark_ = mark; }

  // A graph task begins inside those that are open. Before the policy handles the event.
  void begin_task(GraphTaskId task, const TaskOptions& options);
  void begin_task(GraphTaskId task) { begin_task(task, TaskOptions{}); }
  // The innermost task ends. After the policy has handled the event: until then, what it abandons
  // belongs to a task under way.
  void end_task(GraphTaskId task, bool raised);

  // The module of a forward begins to run, and returned or threw.
  void begin_forward();
  void end_forward() { open_forwards_.pop_back(); }

  // A prologue runs, inside every open task.
  void run_prologue();

  // engine.backward is entered and left.
  void begin_backward();
  void end_backward(bool raised);

  // The open graph tasks, innermost last.
  const std::vector<OpenTask>& tasks() const { return tasks_; }
  // One of them. There must be one.
  const OpenTask& innermost() const;
  // Null for a task that is not open, or none.
  const OpenTask* find(GraphTaskId task) const;

  bool has_open_forward() const { return !open_forwards_.empty(); }
  // Whether a backward that runs now comes before the one of a forward that has not returned: the
  // innermost task does, or without a task whatever runs inside an open forward.
  bool is_inside_forward() const {
    return tasks_.empty() ? has_open_forward() : tasks_.back().is_inside_forward;
  }
  // Whether the innermost task has seen no prologue yet. False without a task.
  bool is_before_prologue() const { return !tasks_.empty() && !tasks_.back().has_prologue; }

  // Of the outermost task under way, or of the last one: whether a function transform started it,
  // and whether it or a task inside it ended by an exception.
  bool is_outermost_transform() const { return is_outermost_transform_; }
  bool has_failed_task() const { return has_failed_task_; }

  // Whether engine.backward runs. A call whose mark stayed counts as running.
  bool is_backward_running() const { return calls_ > 0; }
  // Whether the mark of engine.backward is set, as the policy's release sets and clears it.
  bool is_backward_marked() const { return marks_ > 0; }

  // Appends what policies read: two policies with equal bytes, of which the trackers have equal
  // bytes, behave equally from there on.
  void append_state(std::string& bytes) const;

 private:
  std::vector<OpenTask> tasks_;
  // For each open forward, how many tasks were open when it began, without those of transforms.
  std::vector<std::size_t> open_forwards_;
  std::size_t open_transforms_ = 0;  // of tasks_
  std::int32_t calls_ = 0;           // of engine.backward
  std::int32_t marks_ = 0;
  RunningMark running_mark_;
  bool is_outermost_transform_ = false;
  bool has_failed_task_ = false;
};

}  // namespace zeroproof
