#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "model/ids.h"
#include "model/node.h"
#include "model/ops.h"
#include "model/tensor.h"

namespace zeroproof {

struct GradThread;
class GraphTask;

struct BackwardOptions {
  bool create_graph = false;
  std::optional<bool> retain_graph = std::nullopt;  // default: create_graph (rule G6)
  TensorList inputs = {};  // backward(inputs=): nothing else accumulates (rules X1 to X4)
};

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
  virtual void on_backward_begin(const BackwardCall&) {}  // before the graph task exists
  virtual void on_node(const Node&) {}                    // after its prehooks, before it runs
  virtual void on_backward_end(std::exception_ptr) {}     // null when it returned
};

// The autograd of one simulated process: graph tasks and threads. PyTorch's rules to the last
// hook (autograd_semantics); each method says which. Everything happens on the calling thread of
// control; simulated threads are counters and queues. Not thread-safe.
class Autograd {
 public:
  // Both must outlive it.
  explicit Autograd(const Ops& ops, AutogradObserver* observer = nullptr);
  ~Autograd();
  Autograd(const Autograd&) = delete;
  Autograd& operator=(const Autograd&) = delete;

  // One graph task over all roots (rules G1 to G5). Undefined or missing grads stand for ones and
  // need one-element roots. Rethrows what a hook, a node or a callback threw (F1, C5);
  // AutogradError for a misuse.
  void backward(const TensorList& roots, const TensorList& grads = {},
                const BackwardOptions& options = {});
  void backward(const Tensor& root, const BackwardOptions& options = {});

  // Gradients of the outputs' sum for `inputs`, one each; nothing accumulates (rule X2).
  // Undefined where an input is not reached.
  TensorList grad(const TensorList& outputs, const TensorList& inputs,
                  const BackwardOptions& options = {});

  // Runs at the end of the graph task that is current here (rules C1 to C7); AutogradError when
  // none is.
  void queue_callback(std::function<void()> callback);

  // None outside nodes, hooks and callbacks.
  GraphTaskId current_graph_task() const;

  // Whether the current task runs or has run the node (rule X5). AutogradError outside a task and
  // for a leaf that grad() captures.
  bool will_execute(const Node& node) const;

  bool is_grad_enabled() const;
  bool set_grad_enabled(bool is_enabled);  // returns what it was

  // Anomaly mode: a NaN that a node makes fails the task right there (rule F3).
  void set_anomaly_enabled(bool is_enabled) { is_anomaly_enabled_ = is_enabled; }

  // Simulated threads: 0 calls first. Each has its own sequence numbers (rule N3).
  std::int32_t current_thread() const;
  std::int32_t add_thread();
  std::int32_t set_thread(std::int32_t thread);  // returns the one before
  // The counter of the current thread: the next node's number.
  std::uint64_t next_sequence_nr() const;
  void set_next_sequence_nr(std::uint64_t sequence_nr);
  std::uint64_t take_sequence_nr();

  const Ops& ops() const { return ops_; }

 private:
  TensorList run(const BackwardCall& call, TensorList grads);
  TensorList execute(const BackwardCall& call, TensorList grads);
  void drive(const std::shared_ptr<GraphTask>& task);
  void evaluate(const std::shared_ptr<GraphTask>& task, Node& node, TensorList grads);
  TensorList call_node(const GraphTask& task, Node& node, TensorList grads);
  void deliver(const std::shared_ptr<GraphTask>& task, const Node& node, TensorList outputs);
  void push(const std::shared_ptr<GraphTask>& task, std::shared_ptr<Node> node, TensorList grads);
  void finish(GraphTask& task);
  GradThread& thread() const { return *running_; }
  GradThread& pool_thread(const GradThread& caller);

  const Ops& ops_;
  AutogradObserver* observer_;
  bool is_anomaly_enabled_ = false;
  std::int64_t next_graph_task_ = 0;
  std::deque<GradThread> threads_;
  GradThread* running_;
};

// Grad mode for a while.
class GradMode {
 public:
  GradMode(Autograd& autograd, bool is_enabled)
      : autograd_(autograd), before_(autograd.set_grad_enabled(is_enabled)) {}
  ~GradMode() { autograd_.set_grad_enabled(before_); }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  Autograd& autograd_;
  bool before_;
};

}  // namespace zeroproof
