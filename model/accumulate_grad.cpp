#include "model/accumulate_grad.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model/node_creation.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {

AccumulateGrad::AccumulateGrad(Autograd& autograd, const Tensor& leaf)
    : Node(autograd, kAccumulateGradSequence), leaf_(leaf) {
  add_input_metadata(leaf);
}

// Rule A2: hooks live on the leaf and are read when the node runs.
void AccumulateGrad::run_tensor_hooks(TensorList& grads) const {
  run_hooks(leaf_.impl().hooks, grads[0]);
}

// Rule A3: the post-accumulate hooks run in every case.
TensorList AccumulateGrad::apply(TensorList grads) {
  if (grads[0].is_defined() && leaf_.requires_grad()) {
    const Tensor grad = std::move(grads[0]);  // gone when the hooks run
    accumulate(grad);
  }
  const auto& hooks = leaf_.impl().post_accumulate_hooks;
  if (!hooks.is_empty())
    for (const auto& hook : hooks.snapshot()) (*hook)(leaf_);
  return {};
}

// Rule A4.
void AccumulateGrad::accumulate(const Tensor& grad) {
  Tensor& stored = leaf_.impl().grad;
  if (!stored.is_defined()) {
    if (can_steal(grad)) {
      stored = grad.detach();
    } else {
      stored = copy(grad);
    }
  } else if (autograd().is_grad_enabled() || stored.wrapper() || grad.wrapper()) {
    stored = add(autograd(), stored, grad);
  } else {
    autograd().ops().add_in_place(stored, grad);
  }
}

// With node posthooks the evaluation itself keeps a second reference to the gradient.
bool AccumulateGrad::can_steal(const Tensor& grad) const {
  const long expected_references = has_post_hooks() ? 2 : 1;
  return !autograd().is_grad_enabled() && !grad.wrapper() &&
         grad.use_count() <= expected_references && has_layout_of_leaf(grad);
}

// Strides alone decide, as PyTorch looks at them: a leaf whose data went away may have other sizes.
// One element with stride 0 is part of something expanded, and other leaves' gradients share it.
bool AccumulateGrad::has_layout_of_leaf(const Tensor& grad) const {
  const Shape& strides = leaf_.strides();
  if (grad.strides().size() > strides.size()) return false;
  for (std::size_t i = 0; i < grad.strides().size(); ++i)
    if (grad.sizes()[i] == 1 ? grad.strides()[i] == 0 : grad.strides()[i] != strides[i])
      return false;
  return true;
}

// Into a tensor of the leaf's layout; `.data =` may have changed its sizes since (rule A6).
Tensor AccumulateGrad::copy(const Tensor& grad) const {
  const Shape& sizes = leaf_.sizes();
  if (grad.wrapper() || grad.sizes() == sizes) return clone(autograd(), grad);
  for (std::size_t i = 1; i <= std::min(sizes.size(), grad.sizes().size()); ++i) {
    const std::int64_t wanted = sizes[sizes.size() - i];
    const std::int64_t given = grad.sizes()[grad.sizes().size() - i];
    if (given == wanted || given == 1) continue;
    throw AutogradError("The size of tensor a (" + std::to_string(wanted) +
                        ") must match the size of tensor b (" + std::to_string(given) +
                        ") at non-singleton dimension " + std::to_string(grad.sizes().size() - i));
  }
  return clone(autograd(), grad);
}

std::shared_ptr<Node> find_accumulate_grad(const Tensor& leaf) {
  return leaf.impl().accumulate_grad.lock();
}

namespace {

// Numbers of nodes and tasks mean something within one process only.
Edge own_edge(const Autograd& autograd, std::shared_ptr<Node> node, std::uint32_t slot) {
  if (!node->belongs_to(autograd))
    throw AutogradError("a tensor of one Autograd was used in another; detach() it first");
  return {std::move(node), slot};
}

}  // namespace

Edge gradient_edge(Autograd& autograd, const Tensor& tensor) {
  if (const auto node = tensor.grad_fn()) return own_edge(autograd, node, tensor.output_nr());
  if (!tensor.requires_grad()) return {};
  if (auto node = find_accumulate_grad(tensor)) return own_edge(autograd, std::move(node), 0);
  auto node = std::make_shared<AccumulateGrad>(autograd, tensor);
  tensor.impl().accumulate_grad = node;
  tell_node_creation(autograd, *node);
  return {std::move(node), 0};
}

}  // namespace zeroproof
