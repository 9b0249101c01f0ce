#include "zeroproof/model/autograd.h"

#include <algorithm>
#include <utility>

#include "model/accumulate_grad.h"
#include "model/graph_root.h"
#include "model/input_buffer.h"
#include "model/task_end.h"
#include "zeroproof/internal/model/grad_thread.h"
#include "zeroproof/internal/model/graph_task.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/usage_error.h"

namespace zeroproof {
namespace {

// Rule G6.
Tensor root_grad(const Tensor& root, const Tensor& given) {
  if (given.is_defined() && given.sizes() != root.sizes())
    throw AutogradError("Mismatch in shape: a grad_output and its output have different shapes");
  if (given.is_defined()) return given;
  if (root.numel() != 1)
    throw AutogradError("grad can be implicitly created only for scalar outputs");
  return Tensor::full(root.sizes(), 1.0, root.dtype()).on(root.device());
}

TensorList root_grads(const TensorList& roots, const TensorList& given) {
  if (!given.empty() && given.size() != roots.size())
    throw AutogradError("got a different number of tensors and gradients");
  TensorList grads;
  for (std::size_t i = 0; i < roots.size(); ++i)
    grads.push_back(root_grad(roots[i], given.empty() ? Tensor() : given[i]));
  return grads;
}

std::vector<Edge> root_edges(Autograd& autograd, const TensorList& roots) {
  std::vector<Edge> edges;
  for (const Tensor& root : roots) {
    edges.push_back(gradient_edge(autograd, root));
    if (!edges.back().is_valid()) {
      throw AutogradError("element of tensors does not require grad and does not have a grad_fn");
    }
  }
  return edges;
}

// Rule X2: a leaf without a live AccumulateGrad cannot be in the graph.
std::vector<Edge> input_edges(const BackwardCall& call) {
  std::vector<Edge> edges;
  for (const Tensor& input : call.inputs) {
    if (!input.requires_grad())
      throw AutogradError("one of the differentiated Tensors does not require grad");
    if (call.is_accumulating) input.retain_grad();  // rule X4
    if (input.is_leaf()) {
      edges.push_back({find_accumulate_grad(input), 0});
    } else {
      edges.push_back({input.grad_fn(), input.output_nr()});
    }
  }
  return edges;
}

// One root is the task's own first node; several hang under an artificial one (rule G3).
Edge task_root(Autograd& autograd, std::vector<Edge> roots, TensorList& grads) {
  if (roots.size() == 1) return std::move(roots[0]);
  auto node = std::make_shared<GraphRoot>(autograd, autograd.take_sequence_nr(), std::move(grads));
  for (Edge& root : roots) node->add_next_edge(std::move(root));
  grads.clear();
  return {std::move(node), 0};
}

// Why the buffers cannot be had; null when they can.
const char* buffers_refusal(const GradThread& thread, const Node& node, bool is_anomaly_enabled) {
  if (!thread.current_task)
    return "input_grad_buffers can only be accessed while autograd is executing backward()";
  if (node.has_post_hooks())
    return "input_grad_buffers does not support post-hooks on the producing autograd node because "
           "directly accumulated gradients are returned as None and cannot be observed or replaced "
           "by those hooks";
  if (thread.current_node != &node)
    return "input_grad_buffers can only be accessed from the currently executing autograd.Function "
           "backward()";
  if (thread.current_task->options().local.is_grad_enabled)
    return "input_grad_buffers does not support create_graph=True";
  return is_anomaly_enabled ? "input_grad_buffers does not support anomaly detection" : nullptr;
}

}  // namespace

Autograd::Autograd(const Ops& ops, AutogradObserver* observer)
    : ops_(ops), observer_(observer), threads_(1), running_(&threads_.front()) {}
Autograd::~Autograd() = default;

void Autograd::backward(const TensorList& roots, const TensorList& grads,
                        const BackwardOptions& options) {
  if (local().transforms)
    throw AutogradError("backward() called inside a functorch transform. This is not supported");
  const bool keeps = options.retain_graph.value_or(options.create_graph);
  run({roots, options.inputs, true, keeps, options.create_graph}, root_grads(roots, grads));
}

void Autograd::backward(const Tensor& root, const BackwardOptions& options) {
  backward(TensorList{root}, TensorList{}, options);
}

TensorList Autograd::grad(const TensorList& outputs, const TensorList& inputs,
                          const BackwardOptions& options) {
  return grad(outputs, inputs, {}, options);
}

TensorList Autograd::grad(const TensorList& outputs, const TensorList& inputs,
                          const TensorList& grads, const BackwardOptions& options) {
  if (inputs.empty()) throw AutogradError("grad requires non-empty inputs");
  const bool keeps = options.retain_graph.value_or(options.create_graph);
  return run({outputs, inputs, false, keeps, options.create_graph}, root_grads(outputs, grads));
}

TensorList Autograd::run(const BackwardCall& call, TensorList grads) {
  if (observer_) observer_->on_backward_begin(call);
  try {
    const std::shared_ptr<GraphTask> task = start(call, std::move(grads));
    for (GraphTaskListener* listener : listeners_)
      listener->on_graph_task_begin(task->id(), call.keeps_graph);
    drive(task);
    --tasks_under_way_;
    tell_task_end(listeners_, task->id(), task->error != nullptr);
    if (task->error) std::rethrow_exception(task->error);
    if (observer_) observer_->on_backward_end(nullptr);
    return std::move(task->captured());
  } catch (const ExecutionCut&) {
    throw;
  } catch (...) {
    if (observer_) observer_->on_backward_end(std::current_exception());
    throw;
  }
}

// Rule G4, up to the point where the root is ready.
std::shared_ptr<GraphTask> Autograd::start(const BackwardCall& call, TensorList grads) {
  if (thread().has_exposed_buffer)
    throw AutogradError(
        "Calling backward or grad reentrantly after accessing a non-None ctx.input_grad_buffers "
        "entry is not supported");
  std::vector<Edge> roots = root_edges(*this, call.roots);
  for (std::size_t i = 0; i < roots.size(); ++i)
    validate_grad(*this, *roots[i].node, roots[i].slot, grads[i]);
  const std::vector<Edge> inputs = input_edges(call);
  GradThread& caller = thread();
  auto task = std::make_shared<GraphTask>(
      GraphTask::Options{.id = GraphTaskId{next_graph_task_++},
                         .keeps_graph = call.keeps_graph,
                         .is_multithreaded = is_multithreaded_,
                         .reentrant_depth = caller.is_worker() ? caller.total_depth + 1 : 0,
                         .local = *caller.local,
                         .caller_streams = caller.streams,
                         .cpu_queue = caller.queue},
      tasks_under_way_ == 0);
  task->set_grad_enabled(call.creates_graph);
  const Edge root = task_root(*this, std::move(roots), grads);
  Node& node = *root.node;
  task->count_dependencies(root.node);
  if (!call.inputs.empty()) {
    if (call.is_accumulating) {
      task->limit_to_needed(inputs);
    } else {
      task->limit_to_captured(inputs);
    }
  }
  TensorList& buffer = task->find(node)->grads;
  buffer.resize(std::max<std::size_t>(1, node.input_metadata().size()));
  if (!grads.empty()) buffer[root.slot] = std::move(grads[0]);
  ++tasks_under_way_;
  push(task, node);
  return task;
}

std::vector<std::exception_ptr> Autograd::backward_together(
    const std::vector<CallerBackward>& calls) {
  std::vector<std::shared_ptr<GraphTask>> tasks;
  std::vector<std::unique_ptr<Holding<std::int32_t>>> drives;
  has_other_threads_ = true;
  std::vector<std::exception_ptr> errors(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const CallerBackward& call = calls[i];
    const bool keeps = call.options.retain_graph.value_or(call.options.create_graph);
    const Holding running(running_, &threads_.at(static_cast<std::size_t>(call.thread)));
    tasks.emplace_back();
    try {
      const BackwardCall as_call{call.roots, call.options.inputs, true, keeps,
                                 call.options.create_graph};
      tasks[i] = start(as_call, root_grads(call.roots, call.grads));
      drives.push_back(std::make_unique<Holding<std::int32_t>>(thread().drives, 1));
    } catch (const AutogradError&) {
      errors[i] = std::current_exception();
    }
  }
  const auto is_running = [](const auto& task) { return task && !task->is_complete(); };
  while (std::any_of(tasks.begin(), tasks.end(), is_running)) run_one(next_thread(thread()));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!tasks[i]) continue;
    errors[i] = tasks[i]->error;
    --tasks_under_way_;
  }
  return errors;
}

void Autograd::set_scheduling(Chooser& chooser, OrderModel order_model) {
  chooser_ = &chooser;
  order_model_ = order_model;
}

bool Autograd::set_multithreading_enabled(bool is_enabled) {
  return std::exchange(is_multithreaded_, is_enabled);
}

void Autograd::queue_callback(std::function<void()> callback) {
  if (!thread().current_task) {
    throw AutogradError("Final callbacks can only be installed during backward pass.");
  }
  thread().current_task->callbacks().push_back(std::move(callback));
}

TensorList Autograd::input_grad_buffers(const Node& node) {
  if (const char* refusal = buffers_refusal(thread(), node, is_anomaly_enabled_))
    throw AutogradError(refusal);
  TensorList buffers;
  for (const Edge& edge : node.next_edges()) {
    buffers.emplace_back();
    if (!edge.is_valid()) continue;
    const GraphTask::NodeState& state = *thread().current_task->find(*edge.node);
    if (!state.has_grads || !is_writable_buffer(state.grads[edge.slot])) continue;
    buffers.back() = state.grads[edge.slot];
    thread().has_exposed_buffer = true;
  }
  return buffers;
}

bool Autograd::will_execute(const Node& node) const {
  if (!thread().current_task)
    throw AutogradError("_get_current_graph_task_nodes_in_graph is only valid during backward");
  const GraphTask& task = *thread().current_task;
  const GraphTask::NodeState* state = task.find(node);
  if (!state || !state->is_visited) return false;
  if (!task.is_limited()) return true;
  if (state->is_captured && dynamic_cast<const AccumulateGrad*>(&node))
    throw AutogradError("a leaf node was passed to _will_engine_execute_node under grad()");
  return state->is_executable();
}

bool Autograd::is_checkpoint_valid() const {
  return thread().is_checkpoint_valid;
}

LocalState& Autograd::local() {
  return *thread().local;
}
const LocalState& Autograd::local() const {
  return *thread().local;
}
bool Autograd::set_grad_enabled(bool is_enabled) {
  return std::exchange(local().is_grad_enabled, is_enabled);
}

AutocastNesting& Autograd::autocast_nesting() {
  return thread().autocast;
}

StreamIndex Autograd::current_stream(Device device) const {
  const auto index = static_cast<std::size_t>(device.accelerator);
  return index < thread().streams.size() ? thread().streams[index] : 0;
}
StreamIndex Autograd::set_current_stream(Device device, StreamIndex stream) {
  require(!device.is_cpu() && stream >= 0,
          "set_current_stream: give an accelerator, and a stream of at least 0");
  const auto index = static_cast<std::size_t>(device.accelerator);
  std::vector<StreamIndex>& streams = thread().streams;
  if (index >= streams.size()) streams.resize(index + 1, 0);
  return std::exchange(streams[index], stream);
}

std::int32_t Autograd::current_thread() const {
  return thread().index;
}
std::int32_t Autograd::add_thread() {
  const auto index = static_cast<std::int32_t>(threads_.size());
  threads_.emplace_back().index = index;
  return index;
}
std::int32_t Autograd::set_thread(std::int32_t thread) {
  return std::exchange(running_, &threads_.at(static_cast<std::size_t>(thread)))->index;
}

std::uint64_t Autograd::next_sequence_nr() const {
  return thread().next_sequence_nr;
}
void Autograd::set_next_sequence_nr(std::uint64_t sequence_nr) {
  thread().next_sequence_nr = sequence_nr;
}
std::uint64_t Autograd::take_sequence_nr() {
  return thread().next_sequence_nr++;
}

}  // namespace zeroproof
