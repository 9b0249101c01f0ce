#pragma once

#include <exception>

#include "zeroproof/internal/model/node.h"
#include "zeroproof/internal/model/transforms/transform_frame.h"
#include "zeroproof/model/ids.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

// One backward() or grad() call, as an observer sees it.
struct BackwardCall {
  const TensorList& roots;
  const TensorList& inputs;
  bool is_accumulating = true;  // backward(); false: grad()
  bool keeps_graph = false;
  bool creates_graph = false;
};

// Sees what the engine does, at the moments PyTorch's own hooks could. Must not change anything.
class AutogradObserver {
 public:
  virtual ~AutogradObserver() = default;
  virtual void on_backward_begin(const BackwardCall&) {}    // before the graph task exists
  virtual void on_node(const Node&) {}                      // after its prehooks, before it runs
  virtual void on_backward_end(std::exception_ptr) {}       // NOLINT: null when it returned
  virtual void on_transform_push(const TransformFrame&) {}  // it is on the stack
  virtual void on_transform_pop(const TransformFrame&) {}   // it still is
};

// Learns when graph tasks begin and end, nested ones inside others.
class GraphTaskListener {
 public:
  virtual ~GraphTaskListener() = default;
  // No node of it has run. `keeps_graph`: retain_graph.
  virtual void on_graph_task_begin(GraphTaskId task, bool keeps_graph) = 0;
  // Its callbacks have run, unless it raised; the task around it is current again.
  virtual void on_graph_task_end(GraphTaskId task, bool raised) = 0;
};

}  // namespace zeroproof
