#include "model/autograd.h"

#include <utility>

#include "model/accumulate_grad.h"
#include "model/autograd_error.h"
#include "model/check.h"
#include "model/grad_thread.h"
#include "model/graph_root.h"
#include "model/graph_task.h"
#include "model/input_buffer.h"

namespace zeroproof {
namespace {

constexpr std::int32_t kReentrantDepthMax = 60;  // rule R4

// Rule G6.
Tensor root_grad(const Tensor& root, const Tensor& given) {
  if (given.is_defined()) return given;
  if (root.numel() != 1)
    throw AutogradError("grad can be implicitly created only for scalar outputs");
  return Tensor::full(root.sizes(), 1.0, root.dtype());
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

}  // namespace

Autograd::Autograd(const Ops& ops, AutogradObserver* observer)
    : ops_(ops), observer_(observer), threads_(1), running_(&threads_.front()) {}
Autograd::~Autograd() = default;

void Autograd::backward(const TensorList& roots, const TensorList& grads,
                        const BackwardOptions& options) {
  const bool keeps = options.retain_graph.value_or(options.create_graph);
  run({roots, options.inputs, true, keeps, options.create_graph}, root_grads(roots, grads));
}

void Autograd::backward(const Tensor& root, const BackwardOptions& options) {
  backward(TensorList{root}, TensorList{}, options);
}

TensorList Autograd::grad(const TensorList& outputs, const TensorList& inputs,
                          const BackwardOptions& options) {
  if (inputs.empty()) throw AutogradError("grad requires non-empty inputs");
  const bool keeps = options.retain_graph.value_or(options.create_graph);
  return run({outputs, inputs, false, keeps, options.create_graph}, root_grads(outputs, {}));
}

TensorList Autograd::run(const BackwardCall& call, TensorList grads) {
  if (observer_) observer_->on_backward_begin(call);
  try {
    TensorList captured = execute(call, std::move(grads));
    if (observer_) observer_->on_backward_end(nullptr);
    return captured;
  } catch (...) {
    if (observer_) observer_->on_backward_end(std::current_exception());
    throw;
  }
}

TensorList Autograd::execute(const BackwardCall& call, TensorList grads) {
  std::vector<Edge> roots = root_edges(*this, call.roots);
  for (std::size_t i = 0; i < roots.size(); ++i)
    validate_grad(*this, *roots[i].node, roots[i].slot, grads[i]);
  const std::vector<Edge> inputs = input_edges(call);
  const std::int32_t depth = thread().drives == 0 ? 0 : thread().task_depth + 1;
  const auto task = std::make_shared<GraphTask>(GraphTask::Options{
      GraphTaskId{next_graph_task_++}, call.keeps_graph, call.creates_graph, depth});
  const Edge root = task_root(*this, std::move(roots), grads);
  task->count_dependencies(*root.node);
  if (!call.inputs.empty()) {
    if (call.is_accumulating) {
      task->limit_to_needed(*root.node, inputs);
    } else {
      task->limit_to_captured(*root.node, inputs);
    }
  }
  TensorList buffer(std::max<std::size_t>(1, root.node->input_metadata().size()));
  if (!grads.empty()) buffer[root.slot] = std::move(grads[0]);
  push(task, root.node, std::move(buffer));
  drive(task);
  if (task->error) std::rethrow_exception(task->error);
  return std::move(task->captured());
}

void Autograd::queue_callback(std::function<void()> callback) {
  if (!thread().current_task) {
    throw AutogradError("Final callbacks can only be installed during backward pass.");
  }
  thread().current_task->callbacks().push_back(std::move(callback));
}

GraphTaskId Autograd::current_graph_task() const {
  return thread().current_task ? thread().current_task->id() : GraphTaskId::none();
}

bool Autograd::will_execute(const Node& node) const {
  if (!thread().current_task)
    throw AutogradError("_get_current_graph_task_nodes_in_graph is only valid during backward");
  const GraphTask& task = *thread().current_task;
  const GraphTask::NodeState* state = task.find(node);
  if (!state || !state->is_visited) return false;
  if (!task.is_limited()) return true;
  if (!state->captures.empty() && dynamic_cast<const AccumulateGrad*>(&node))
    throw AutogradError("a leaf node was passed to _will_engine_execute_node under grad()");
  return state->is_executable();
}

bool Autograd::is_grad_enabled() const {
  return thread().is_grad_enabled;
}
bool Autograd::set_grad_enabled(bool is_enabled) {
  return std::exchange(thread().is_grad_enabled, is_enabled);
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

// Takes over the caller's queue while the caller waits.
GradThread& Autograd::pool_thread(const GradThread& caller) {
  GradThread& pool = threads_[static_cast<std::size_t>(add_thread())];
  pool.queue = caller.queue;
  return pool;
}

// Rule R2: deeper tasks win in the queue, so this ends before anything of an outer task runs.
void Autograd::drive(const std::shared_ptr<GraphTask>& task) {
  const bool is_handed_over = thread().drives > kReentrantDepthMax;
  const Holding running(running_, is_handed_over ? &pool_thread(thread()) : running_);
  const Holding drives(thread().drives, thread().drives + 1);
  const Holding depth(thread().task_depth, task->options().reentrant_depth);
  while (!task->is_complete()) {
    ZP_CHECK(!thread().queue->is_empty(), "a graph task waits for a node that nobody runs");
    NodeTask next = thread().queue->pop();
    const auto owner = next.task.lock();
    if (!owner || owner->is_complete()) continue;  // left over from a failed task (rule F1)
    try {
      const Holding current(thread().current_task, owner);
      const GradMode mode(*this, owner->options().creates_graph);
      evaluate(owner, *next.node, std::move(next.grads));
      if (--owner->outstanding == 0) finish(*owner);
    } catch (...) {
      owner->error = std::current_exception();
    }
  }
}

}  // namespace zeroproof
