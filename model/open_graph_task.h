#pragma once

#include <optional>

#include "zeroproof/internal/model/graph_task.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof {

// A graph task without a graph: while it is open, the hooks of leaves are called by the one who
// explores their orders, each as if its AccumulateGrad had just run. Listeners and final callbacks
// see what they see of a backward, so an engine sees no difference. One object may be
// opened again and again; every time it is another task.
class OpenGraphTask {
 public:
  // `autograd` must outlive it.
  explicit OpenGraphTask(Autograd& autograd) : autograd_(autograd) {}
  ~OpenGraphTask();  // an open one is abandoned; what that throws is lost
  OpenGraphTask(const OpenGraphTask&) = delete;
  OpenGraphTask& operator=(const OpenGraphTask&) = delete;

  bool is_open() const { return task_.has_value(); }
  GraphTaskId id() const { return task_ ? task_->id() : GraphTaskId::none(); }

  void begin();    // not inside another task of the thread
  void finish();   // runs the callbacks (rules C1 to C7); what one throws fails the task (C5)
  void abandon();  // it failed (rule F1): no callback runs

 private:
  void close(bool raised);

  Autograd& autograd_;
  std::optional<GraphTask> task_;
};

}  // namespace zeroproof
