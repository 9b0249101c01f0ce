#include "zeroproof/internal/model/node.h"

#include <algorithm>
#include <utility>

#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {

// Edges move to a list before their owner goes, so that a node whose last owner was the one
// before it is destroyed from here and not from inside that one's destructor.
Node::~Node() {
  std::vector<std::shared_ptr<Node>> orphans;
  const auto gather = [&orphans](Node& node) {
    for (Edge& edge : node.next_edges_) {
      if (edge.node.use_count() == 1) orphans.push_back(std::move(edge.node));
      edge.node.reset();
    }
  };
  gather(*this);
  while (!orphans.empty()) {
    const std::shared_ptr<Node> node = std::move(orphans.back());
    orphans.pop_back();
    if (node.use_count() != 1) continue;
    node->release_saved_tensors();  // they own nodes too, while the edges still do
    gather(*node);
  }
}

void Node::add_next_edge(Edge edge) {
  if (edge.is_valid()) topological_nr_ = std::max(topological_nr_, edge.node->topological_nr_ + 1);
  next_edges_.push_back(std::move(edge));
}

std::uint32_t Node::add_input_metadata(const Tensor& output) {
  const Device device = output.device();
  input_metadata_.push_back({.sizes = output.sizes(), .dtype = output.dtype(), .device = device});
  if (device_.is_cpu() && !device.is_cpu()) {
    device_ = device;
    stream_ = autograd_.current_stream(device);
  }
  return static_cast<std::uint32_t>(input_metadata_.size() - 1);
}

Node::Hooks& Node::hooks() {
  if (!hooks_) hooks_ = std::make_unique<Hooks>();
  return *hooks_;
}

HookHandle Node::add_tensor_hook(std::uint32_t slot, Tensor::Hook hook) {
  std::vector<SlotHooks>& slots = hooks().tensor;
  auto at = std::find_if(slots.begin(), slots.end(),
                         [slot](const SlotHooks& hooks) { return hooks.slot == slot; });
  if (at == slots.end()) at = slots.insert(at, SlotHooks{slot, {}});
  return at->hooks.add(std::move(hook));
}

void Node::retain_grad_of(const Tensor& output) {
  hooks().retained.push_back({output.output_nr(), output.shared_impl()});
}

void Node::run_own_tensor_hooks(TensorList& grads) const {
  for (std::size_t i = 0; i < hooks_->tensor.size(); ++i) {
    const SlotHooks slot = hooks_->tensor[i];  // a hook may register another
    run_hooks(slot.hooks, grads[slot.slot]);
  }
  for (const RetainedGrad& retained : hooks_->retained)
    if (const auto tensor = retained.tensor.lock(); tensor && tensor->grad_fn.get() == this)
      tensor->grad = grads[retained.slot];  // else it has moved on to a newer grad_fn (rule H2)
}

void run_hooks(const HookList<Tensor::Hook>& hooks, Tensor& grad) {
  if (hooks.is_empty()) return;
  for (const auto& hook : hooks.snapshot()) {
    Tensor replacement = (*hook)(grad);
    check_replacement(grad, replacement);
    if (replacement.is_defined()) grad = std::move(replacement);
  }
}

void check_replacement(const Tensor& grad, const Tensor& replacement) {
  if (!replacement.is_defined()) return;
  if (!grad.is_defined())
    throw AutogradError("can't replace a None gradient with a non-None value");
  if (replacement.dtype() != grad.dtype())
    throw AutogradError("a hook has changed the type of value");
  if (replacement.sizes() != grad.sizes())
    throw AutogradError("a hook has changed the size of value");
}

void check_replacements(const TensorList& grads, const TensorList& replacements) {
  if (replacements.size() != grads.size())
    throw AutogradError("a hook has returned an incorrect number of values");
  for (std::size_t i = 0; i < grads.size(); ++i) check_replacement(grads[i], replacements[i]);
}

}  // namespace zeroproof
