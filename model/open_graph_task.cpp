#include "model/open_graph_task.h"

#include "model/check.h"
#include "model/task_end.h"
#include "zeroproof/internal/model/grad_thread.h"

namespace zeroproof {

OpenGraphTask::~OpenGraphTask() {
  if (!is_open()) return;
  try {
    abandon();
  } catch (...) {  // it cannot be reported here
  }
}

void OpenGraphTask::begin() {
  GradThread& thread = autograd_.thread();
  ZP_CHECK(!is_open() && thread.current_task == nullptr, "an open graph task stands alone");
  task_.emplace(GraphTask::Options{.id = GraphTaskId{autograd_.next_graph_task_++},
                                   .local = *thread.local,
                                   .caller_streams = thread.streams,
                                   .cpu_queue = thread.queue},
                autograd_.tasks_under_way_ == 0);
  ++autograd_.tasks_under_way_;
  ++thread.drives;
  thread.current_task = &*task_;
  for (GraphTaskListener* listener : autograd_.listeners_)
    listener->on_graph_task_begin(task_->id(), false);
}

void OpenGraphTask::finish() {
  ZP_CHECK(is_open(), "no graph task is open");
  try {
    autograd_.finish(*task_);
  } catch (...) {
    close(true);
    throw;
  }
  close(false);
}

void OpenGraphTask::abandon() {
  ZP_CHECK(is_open(), "no graph task is open");
  close(true);
}

void OpenGraphTask::close(bool raised) {
  GradThread& thread = autograd_.thread();
  thread.current_task = nullptr;
  --thread.drives;
  --autograd_.tasks_under_way_;
  const GraphTaskId id = task_->id();
  task_.reset();
  tell_task_end(autograd_.listeners_, id, raised);
}

}  // namespace zeroproof
