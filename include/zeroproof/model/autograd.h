#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/internal/model/autograd_observer.h"
#include "zeroproof/internal/model/choice.h"
#include "zeroproof/internal/model/global_state.h"
#include "zeroproof/internal/model/grad_thread.h"
#include "zeroproof/internal/model/graph_task.h"
#include "zeroproof/internal/model/local_state.h"
#include "zeroproof/internal/model/node.h"
#include "zeroproof/internal/model/ops.h"
#include "zeroproof/internal/model/order_model.h"
#include "zeroproof/model/device.h"
#include "zeroproof/model/ids.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

class OpenGraphTask;

struct BackwardOptions {
  bool create_graph = false;
  std::optional<bool> retain_graph = std::nullopt;  // default: create_graph (rule G6)
  TensorList inputs = {};  // backward(inputs=): no other leaf accumulates (rules X1 to X4)
};

// A backward() of one simulated thread, for several at once.
struct CallerBackward {
  std::int32_t thread = 0;
  TensorList roots;
  TensorList grads = {};
  BackwardOptions options = {};
};

// The autograd of one simulated process: graph tasks and threads. PyTorch's rules to the last
// hook (docs/spec/autograd.md); each method says which. Everything happens on the calling thread of
// control; simulated threads are counters, states and queues, and which of them goes on is a
// choice. Not thread-safe.
class Autograd {
 public:
  // Both must outlive it.
  explicit Autograd(const Ops& ops, AutogradObserver* observer = nullptr);
  ~Autograd();
  Autograd(const Autograd&) = delete;
  Autograd& operator=(const Autograd&) = delete;

  // Who decides where several orders are legal, and how wide that is; `chooser` must outlive it.
  // Before that, the first option: a thread that pushed goes on, the thread made first runs first.
  void set_scheduling(Chooser& chooser, OrderModel order_model = OrderModel::faithful);
  // Off: nodes of accelerators run on the caller as well (rule Q4).
  bool set_multithreading_enabled(bool is_enabled);  // returns what it was

  // One graph task over all roots (rules G1 to G5). Undefined or missing grads stand for ones and
  // need one-element roots. Rethrows what a hook, a node or a callback threw (F1, C5);
  // AutogradError for a misuse.
  void backward(const TensorList& roots, const TensorList& grads = {},
                const BackwardOptions& options = {});
  void backward(const Tensor& root, const BackwardOptions& options = {});

  // Gradients of the outputs' sum for `inputs`, one each; no leaf accumulates (rule X2).
  // Undefined where an input is not reached. `grads` are those of the outputs, as in backward().
  TensorList grad(const TensorList& outputs, const TensorList& inputs,
                  const BackwardOptions& options = {});
  TensorList grad(const TensorList& outputs, const TensorList& inputs, const TensorList& grads,
                  const BackwardOptions& options);

  // Several threads call backward() at the same time; a thread is named at most once. What each
  // threw, or null. Not from within a backward.
  std::vector<std::exception_ptr> backward_together(const std::vector<CallerBackward>& calls);

  // Runs at the end of the graph task that is current here (rules C1 to C7); AutogradError when
  // none is.
  void queue_callback(std::function<void()> callback);

  // What the slots that `node` is about to deliver to have gathered so far, one an edge, where it
  // may be added to in place (ctx.input_grad_buffers); undefined elsewhere. For the node that runs.
  // A nested backward is refused once one was given out. AutogradError for a misuse.
  TensorList input_grad_buffers(const Node& node);

  // None outside nodes, hooks and callbacks.
  GraphTaskId current_graph_task() const {
    const GraphTask* task = running_->current_task;
    return task ? task->id() : GraphTaskId::none();
  }

  // The listener must outlive its place here. Called in order of addition, at ends in reverse.
  void add_listener(GraphTaskListener& listener) { listeners_.push_back(&listener); }
  void remove_listener(GraphTaskListener& listener) { std::erase(listeners_, &listener); }

  // Whether the current task runs or has run the node (rule X5). AutogradError outside a task and
  // for a leaf that grad() captures.
  bool will_execute(const Node& node) const;

  // Whether a node may start a backward of its own that gradients flow through: no task around it
  // was given inputs (rule K2).
  bool is_checkpoint_valid() const;

  // The state of the current thread that graph tasks carry along.
  LocalState& local();
  const LocalState& local() const;
  GlobalState& global() { return global_; }
  bool is_grad_enabled() const { return local().is_grad_enabled; }
  bool set_grad_enabled(bool is_enabled);  // returns what it was

  // Of the current thread, and not carried.
  AutocastNesting& autocast_nesting();

  // Anomaly mode: a NaN that a node makes fails the task right there (rule F3).
  void set_anomaly_enabled(bool is_enabled) { is_anomaly_enabled_ = is_enabled; }

  // Simulated threads: 0 calls first. Each has its own sequence numbers (rule N3).
  std::int32_t current_thread() const;
  std::int32_t add_thread();
  std::int32_t set_thread(std::int32_t thread);  // returns the one before
  // The current stream of an accelerator on the current thread (rule Q7).
  StreamIndex current_stream(Device device) const;
  StreamIndex set_current_stream(Device device, StreamIndex stream);  // returns the one before

  // The counter of the current thread: the next node's number.
  std::uint64_t next_sequence_nr() const;
  void set_next_sequence_nr(std::uint64_t sequence_nr);
  std::uint64_t take_sequence_nr();

  const Ops& ops() const { return ops_; }
  AutogradObserver* observer() const { return observer_; }

 private:
  friend class OpenGraphTask;

  TensorList run(const BackwardCall& call, TensorList grads);
  std::shared_ptr<GraphTask> start(const BackwardCall& call, TensorList grads);
  void drive(const std::shared_ptr<GraphTask>& task);

  void run_one(GradThread& worker);
  NodeTask pop(GradThread& worker);
  void evaluate(const std::shared_ptr<GraphTask>& task, Node& node);
  TensorList call_node(Node& node, TensorList& grads);
  void deliver(const std::shared_ptr<GraphTask>& task, const Node& node, TensorList& outputs);
  bool push(const std::shared_ptr<GraphTask>& task, Node& node);
  void finish(GraphTask& task);
  TensorList take_buffer(std::size_t slots);
  void recycle_buffer(TensorList buffer);

  std::size_t choose(std::string_view site, const std::vector<std::string>& options);
  void let_others_run();
  std::vector<GradThread*> runnable_threads();
  GradThread& next_thread(GradThread& driver);
  GradThread& thread() const { return *running_; }
  GradThread& device_thread(Device device);
  GradThread& pool_thread(const GradThread& caller);

  const Ops& ops_;
  AutogradObserver* observer_;
  std::vector<GraphTaskListener*> listeners_;
  Chooser* chooser_ = nullptr;
  OrderModel order_model_ = OrderModel::faithful;
  Fingerprint history_;  // of the choices so far
  bool is_anomaly_enabled_ = false;
  bool is_multithreaded_ = true;
  GlobalState global_;
  bool has_other_threads_ = false;  // that may run nodes while one waits
  std::int64_t next_graph_task_ = 0;
  std::int32_t tasks_under_way_ = 0;
  std::vector<TensorList> spare_buffers_;
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
