#include "props/task_tree.h"

#include <algorithm>

#include "zeroproof/model/state_bytes.h"

namespace zeroproof {

std::int64_t TaskTree::begin(const HookEvent& event) {
  Task task;
  task.serial = next_serial_++;
  task.graph_task = event.graph_task;
  task.call = event.call;
  for (const Task& open : tasks_)
    if (event.parent_call >= 0 && open.call == event.parent_call) task.parent = open.serial;
  tasks_.push_back(std::move(task));
  return tasks_.back().serial;
}

TaskTree::Task TaskTree::end(const HookEvent& event) {
  const auto is_it = [&](const Task& task) {
    return event.call >= 0 ? task.call == event.call : task.graph_task == event.graph_task;
  };
  const auto found = std::find_if(tasks_.rbegin(), tasks_.rend(), is_it);
  if (found == tasks_.rend()) return {};
  for (BackwardTally& tally : found->tallies) {
    tally.has_raised = event.is_exceptional();
    tally.end_lc = event.lc;
    tally.is_root = found->parent < 0;
    tally.is_under_user_backward = user_task(found->serial, tally.engine) >= 0;
    tally.is_in_callback_mode = is_callback_mode(*found, tally.engine);
  }
  Task ended = std::move(*found);
  tasks_.erase(std::next(found).base());
  return ended;
}

TaskTree::Task* TaskTree::find(GraphTaskId id) {
  if (id.is_none()) return nullptr;
  const auto found = std::find_if(tasks_.rbegin(), tasks_.rend(),
                                  [&](const Task& task) { return task.graph_task == id; });
  return found == tasks_.rend() ? nullptr : &*found;
}

const TaskTree::Task* TaskTree::by_serial(std::int64_t serial) const {
  for (const Task& task : tasks_)
    if (task.serial == serial) return &task;
  return nullptr;
}

TaskTree::Task* TaskTree::by_serial(std::int64_t serial) {
  return const_cast<Task*>(static_cast<const TaskTree*>(this)->by_serial(serial));
}

BackwardTally& TaskTree::tally(Task& task, EngineId engine) {
  for (BackwardTally& known : task.tallies)
    if (known.engine == engine) return known;
  BackwardTally fresh;
  fresh.engine = engine;
  fresh.task = task.serial;
  fresh.graph_task = task.graph_task;
  task.tallies.push_back(fresh);
  return task.tallies.back();
}

std::int64_t TaskTree::user_task(std::int64_t serial, EngineId engine) const {
  for (const Task* task = by_serial(serial); task != nullptr; task = by_serial(task->parent))
    for (const BackwardTally& known : task->tallies)
      if (known.engine == engine && known.is_user_backward) return task->serial;
  return -1;
}

bool TaskTree::is_callback_mode(const Task& task, EngineId engine) const {
  for (const Task* at = &task; at != nullptr; at = by_serial(at->parent))
    for (const BackwardTally& known : at->tallies)
      if (known.engine == engine && known.callbacks_queued > 0) return true;
  return false;
}

void TaskTree::note_output_hook(std::int64_t serial, EngineId engine, bool is_prologue) {
  Task* task = by_serial(serial);
  if (task == nullptr) return;
  BackwardTally& mine = tally(*task, engine);
  mine.is_user_backward = true;
  (is_prologue ? mine.prologues : mine.output_hooks) += 1;
}

void TaskTree::note_work(std::int64_t serial, EngineId engine, const HookEvent& event) {
  for (Task* task = by_serial(serial); task != nullptr; task = by_serial(task->parent)) {
    BackwardTally& mine = tally(*task, engine);
    mine.works += 1;
    if (task->serial == serial) mine.own_works += 1;
    if (mine.last_work_task != serial) mine.phases += 1;
    mine.last_work_task = serial;
    if (mine.epilogues == 0) continue;
    if (mine.late_works++ > 0) continue;
    mine.late_param = event.param;
    mine.late_lc = event.lc;
  }
}

void TaskTree::note_count(std::int64_t serial, EngineId engine, std::int64_t expected) {
  for (Task* task = by_serial(serial); task != nullptr; task = by_serial(task->parent)) {
    BackwardTally& mine = tally(*task, engine);
    mine.counts += 1;
    if (task->serial == serial)
      mine.expected_max = std::max(mine.expected_max, static_cast<std::int32_t>(expected));
  }
}

void TaskTree::note_epilogue(std::int64_t serial, EngineId engine) {
  std::int64_t at = user_task(serial, engine);
  for (const Task* task = by_serial(serial); at < 0 && task != nullptr;) {
    const Task* parent = by_serial(task->parent);
    if (parent == nullptr) at = task->serial;
    task = parent;
  }
  if (Task* task = by_serial(at)) tally(*task, engine).epilogues += 1;
}

void TaskTree::note_callback(std::int64_t serial, EngineId engine, NameId label) {
  Task* task = by_serial(serial);
  if (task == nullptr) return;
  task->callbacks.push_back({label, engine, false});
  tally(*task, engine).callbacks_queued += 1;
}

EngineId TaskTree::begin_callback(std::int64_t serial, const HookEvent& event) {
  Task* task = by_serial(serial);
  if (task == nullptr) return EngineId::none();
  for (Callback& callback : task->callbacks) {
    const bool is_it =
        event.engine.is_none() ? callback.label == event.name : callback.engine == event.engine;
    if (!is_it || callback.has_begun) continue;
    callback.has_begun = true;
    return callback.engine;
  }
  return EngineId::none();
}

std::int32_t TaskTree::live_callbacks(EngineId engine) const {
  std::int32_t live = 0;
  for (const Task& task : tasks_)
    for (const Callback& callback : task.callbacks)
      live += callback.engine == engine && !callback.has_begun;
  return live;
}

void append_bytes(std::string& bytes, const BackwardTally& tally) {
  append_bytes(bytes, tally.engine.value);
  append_bytes(bytes, tally.is_user_backward);
  append_bytes(bytes, tally.is_root);
  append_bytes(bytes, tally.has_raised);
  for (const std::int64_t number :
       {std::int64_t{tally.output_hooks}, std::int64_t{tally.prologues},
        std::int64_t{tally.epilogues}, std::int64_t{tally.works}, std::int64_t{tally.late_works},
        std::int64_t{tally.counts}, std::int64_t{tally.phases},
        std::int64_t{tally.callbacks_queued}, std::int64_t{tally.own_works},
        std::int64_t{tally.expected_max}, tally.last_work_task})
    append_bytes(bytes, number);
}

void TaskTree::append_state(std::string& bytes) const {
  append_bytes(bytes, static_cast<std::int64_t>(tasks_.size()));
  for (const Task& task : tasks_) {
    append_bytes(bytes, task.serial);
    append_bytes(bytes, task.parent);
    append_bytes(bytes, static_cast<std::int64_t>(task.callbacks.size()));
    for (const Callback& callback : task.callbacks) {
      append_bytes(bytes, callback.engine.value);
      append_bytes(bytes, callback.has_begun);
    }
    append_bytes(bytes, static_cast<std::int64_t>(task.tallies.size()));
    for (const BackwardTally& tally : task.tallies) append_bytes(bytes, tally);
  }
}

}  // namespace zeroproof
