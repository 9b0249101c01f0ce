#include "zeroproof/internal/engine/hooks/backward_tracker.h"

#include <algorithm>

#include "model/check.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {

void BackwardTracker::begin_task(GraphTaskId task, const TaskOptions& options) {
  if (tasks_.empty()) {
    is_outermost_transform_ = options.is_transform;
    has_failed_task_ = false;
  }
  // A forward that began while this task's parent was the innermost one started the task.
  const bool starts_in_forward =
      has_open_forward() && open_forwards_.back() == tasks_.size() - open_transforms_;
  const bool is_nested_in_one = !tasks_.empty() && tasks_.back().is_inside_forward;
  tasks_.push_back({.id = task,
                    .options = options,
                    .starts_in_forward = starts_in_forward,
                    .is_inside_forward = starts_in_forward || is_nested_in_one,
                    .has_prologue = !tasks_.empty() && tasks_.back().has_prologue});
  if (options.is_transform) ++open_transforms_;
}

void BackwardTracker::end_task(GraphTaskId task, bool raised) {
  ZP_CHECK(innermost().id == task, "graph tasks of a process nest");
  if (innermost().options.is_transform) --open_transforms_;
  tasks_.pop_back();
  has_failed_task_ = has_failed_task_ || raised;
}

void BackwardTracker::begin_forward() {
  open_forwards_.push_back(tasks_.size() - open_transforms_);
}

void BackwardTracker::run_prologue() {
  for (OpenTask& task : tasks_) task.has_prologue = true;
}

void BackwardTracker::begin_backward() {
  ++calls_;
  marks_ = running_mark_ == RunningMark::counted ? marks_ + 1 : 1;
}

void BackwardTracker::end_backward(bool raised) {
  if (running_mark_ == RunningMark::counted) {
    --marks_;
  } else if (!raised || running_mark_ == RunningMark::restored) {
    marks_ = 0;
  }
  if (!raised || !is_backward_marked()) --calls_;
}

const BackwardTracker::OpenTask& BackwardTracker::innermost() const {
  ZP_CHECK(!tasks_.empty(), "a graph task is open");
  return tasks_.back();
}

const BackwardTracker::OpenTask* BackwardTracker::find(GraphTaskId task) const {
  const auto at = std::ranges::find(tasks_, task, &OpenTask::id);
  return at == tasks_.end() ? nullptr : &*at;
}

void BackwardTracker::append_state(std::string& bytes) const {
  for (const OpenTask& task : tasks_) {
    append_bytes(bytes, task.id.value);
    append_bytes(bytes, task.starts_in_forward);
  }
  append_bytes(bytes, GraphTaskId::none().value);  // ends the list
  append_bytes(bytes, marks_);
  append_bytes(bytes, open_forwards_.size());
  for (const std::size_t depth : open_forwards_) append_bytes(bytes, depth);
}

}  // namespace zeroproof
