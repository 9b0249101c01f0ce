// The evaluation of one node, step by step (docs/spec/autograd.md 6), and the end of a task.
#include <cmath>
#include <utility>

#include "model/input_buffer.h"
#include "zeroproof/internal/model/grad_thread.h"
#include "zeroproof/internal/model/graph_task.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

void run_prehooks(const Node& node, TensorList& grads) {
  if (!node.has_pre_hooks()) return;
  for (const auto& hook : node.pre_hooks()) {
    TensorList replacement = (*hook)(grads);
    if (replacement.empty()) continue;
    check_replacements(grads, replacement);
    grads = std::move(replacement);
  }
}

void run_posthooks(const Node& node, TensorList& grad_inputs, const TensorList& grad_outputs) {
  for (const auto& hook : node.post_hooks()) {
    TensorList replacement = (*hook)(grad_inputs, grad_outputs);
    if (replacement.empty()) continue;
    check_replacements(grad_inputs, replacement);
    grad_inputs = std::move(replacement);
  }
}

// The usual case, in which no check is left.
bool fits(const Tensor& grad, const std::vector<InputMetadata>& slots, std::uint32_t slot) {
  const TensorImpl& impl = grad.impl();
  return slot < slots.size() && slots[slot].takes(impl.dtype) && impl.sizes == slots[slot].sizes;
}

void validate_outputs(Autograd& autograd, const Node& node, TensorList& outputs) {
  const std::vector<Edge>& edges = node.next_edges();
  if (outputs.size() != edges.size())
    throw AutogradError("a Function returned an incorrect number of gradients");
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (!edges[i].is_valid() || !outputs[i].is_defined()) continue;
    const Node& target = *edges[i].node;
    if (!fits(outputs[i], target.input_metadata(), edges[i].slot))
      validate_grad(autograd, target, edges[i].slot, outputs[i]);
  }
}

void check_for_nan(const Node& node, const TensorList& outputs) {
  for (const Tensor& output : outputs) {
    if (!output.is_defined()) continue;
    for (const double value : output.values()) {
      if (std::isnan(value))
        throw AutogradError("Function '" + std::string(node.name()) + "' returned nan values");
    }
  }
}

}  // namespace

// Step 2: a node that is only captured runs its tensor hooks and stops (rule X3).
void Autograd::evaluate(const std::shared_ptr<GraphTask>& task, Node& node) {
  GraphTask::NodeState& state = *task->find(node);
  TensorList& grads = state.grads;
  if (task->is_limited()) {
    if (!state.is_needed) node.run_tensor_hooks(grads);
    if (state.is_captured)
      for (const GraphTask::Capture& capture : task->captures(node))
        task->captured()[capture.output] = grads[capture.slot];
    if (!state.is_needed) return;
  }
  TensorList outputs = call_node(node, grads);
  if (!task->options().keeps_graph) node.release_saved_tensors();
  if (outputs.empty()) return;
  if (is_anomaly_enabled_) check_for_nan(node, outputs);
  deliver(task, node, outputs);
  recycle_buffer(std::move(outputs));
}

// Steps 3 to 8. Whether posthooks exist is decided before the node runs.
TensorList Autograd::call_node(Node& node, TensorList& grads) {
  node.run_tensor_hooks(grads);
  run_prehooks(node, grads);
  if (observer_) observer_->on_node(node);
  if (!node.has_post_hooks()) {
    TensorList outputs = node.apply(std::move(grads));
    validate_outputs(*this, node, outputs);
    return outputs;
  }
  const TensorList grad_outputs = grads;
  TensorList outputs = node.apply(std::move(grads));
  validate_outputs(*this, node, outputs);
  run_posthooks(node, outputs, grad_outputs);
  return outputs;
}

// Rule E3. Between two deliveries another thread may already take what became ready (rule Q6).
void Autograd::deliver(const std::shared_ptr<GraphTask>& task, const Node& node,
                       TensorList& outputs) {
  const std::vector<Edge>& edges = node.next_edges();
  bool has_woken_another = false;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (!edges[i].is_valid()) continue;
    if (has_woken_another) let_others_run();
    Node& target = *edges[i].node;
    GraphTask::NodeState& state = *task->find(target);
    const bool is_ready = --state.missing == 0;
    Tensor grad = std::move(outputs[i]);
    if (!state.has_grads) {
      if (task->is_limited() && !state.is_executable()) continue;
      state.has_grads = true;
      const std::size_t slots = std::max<std::size_t>(1, target.input_metadata().size());
      const bool is_one_to_one = slots == 1 && outputs.size() == 1;
      state.grads = is_one_to_one ? std::exchange(outputs, {}) : take_buffer(slots);
    }
    add_to_buffer(*this, state.grads[edges[i].slot], std::move(grad));
    if (is_ready && push(task, target)) has_woken_another = true;
  }
}

// Buffers go round: a node's outputs become another's inputs without a new allocation.
TensorList Autograd::take_buffer(std::size_t slots) {
  if (spare_buffers_.empty()) return TensorList(slots);
  TensorList buffer = std::move(spare_buffers_.back());
  spare_buffers_.pop_back();
  buffer.resize(slots);
  return buffer;
}

void Autograd::recycle_buffer(TensorList buffer) {
  constexpr std::size_t kSpareMax = 64;
  if (buffer.capacity() == 0 || spare_buffers_.size() >= kSpareMax) return;
  buffer.clear();
  spare_buffers_.push_back(std::move(buffer));
}

// Rules C1 to C5: in order of registration; one that is added while they run comes last.
void Autograd::finish(GraphTask& task) {
  auto& callbacks = task.callbacks();
  if (!callbacks.empty()) {
    GradThread& worker = thread();
    *worker.local = task.options().local;
    const Holding streams(worker.streams, task.options().caller_streams);
    const Holding no_node(worker.current_node, static_cast<const Node*>(nullptr));
    for (std::size_t i = 0; i < callbacks.size(); ++i) {
      const std::function<void()> callback = callbacks[i];
      callback();
    }
  }
  task.is_finished = true;
}

}  // namespace zeroproof
