#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "zeroproof/props/fact.h"

namespace zeroproof {

// The open graph tasks of one rank and what every engine did in them. Memory is bounded by the
// tasks that are open.
class TaskTree {
 public:
  struct Callback {
    NameId label;
    EngineId engine;
    bool has_begun = false;
  };
  struct Task {
    std::int64_t serial = -1;
    std::int64_t parent = -1;  // serial
    GraphTaskId graph_task;
    std::int64_t call = -1;
    std::vector<Callback> callbacks;
    std::vector<BackwardTally> tallies;  // one an engine
  };

  bool is_empty() const { return tasks_.empty(); }

  // No serial is referred to any more: start again, so that equal situations look equal.
  void restart_serials() { next_serial_ = 0; }
  const std::vector<Task>& tasks() const { return tasks_; }

  std::int64_t begin(const HookEvent& event);
  // Takes the task out of the tree; a task that was never begun gives serial -1.
  Task end(const HookEvent& event);

  // The open task with this id, null when there is none.
  Task* find(GraphTaskId id);
  const Task* find(GraphTaskId id) const { return const_cast<TaskTree*>(this)->find(id); }

  // The innermost task of the engine's UB at or above `serial`, -1 when there is none.
  std::int64_t user_task(std::int64_t serial, EngineId engine) const;

  void note_output_hook(std::int64_t serial, EngineId engine, bool is_prologue);
  void note_work(std::int64_t serial, EngineId engine, const HookEvent& event);
  void note_count(std::int64_t serial, EngineId engine, std::int64_t expected);
  void note_epilogue(std::int64_t serial, EngineId engine);
  void note_callback(std::int64_t serial, EngineId engine, NameId label);

  // The engine that queued the callback that begins now; none when it is unknown.
  EngineId begin_callback(std::int64_t serial, const HookEvent& event);
  std::int32_t live_callbacks(EngineId engine) const;

  void append_state(std::string& bytes) const;

 private:
  Task* by_serial(std::int64_t serial);
  const Task* by_serial(std::int64_t serial) const;
  BackwardTally& tally(Task& task, EngineId engine);
  bool is_callback_mode(const Task& task, EngineId engine) const;

  std::vector<Task> tasks_;  // in order of their begin
  std::int64_t next_serial_ = 0;
};

void append_bytes(std::string& bytes, const BackwardTally& tally);

}  // namespace zeroproof
