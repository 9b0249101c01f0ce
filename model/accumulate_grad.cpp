#include "model/accumulate_grad.h"

#include <utility>

#include "model/autograd.h"
#include "model/autograd_error.h"
#include "model/check.h"
#include "model/functions.h"
#include "model/tensor_impl.h"

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
  if (grads[0].is_defined() && leaf_.requires_grad()) accumulate(std::move(grads[0]));
  const auto& hooks = leaf_.impl().post_accumulate_hooks;
  if (!hooks.is_empty())
    for (const auto& hook : hooks.snapshot()) (*hook)(leaf_);
  return {};
}

// Rule A4.
void AccumulateGrad::accumulate(Tensor grad) {
  Tensor& stored = leaf_.impl().grad;
  if (!stored.is_defined()) {
    if (can_steal(grad)) {
      stored = grad.detach();
    } else if (grad.sizes() != leaf_.sizes()) {
      // The copy takes the leaf's layout; `.data =` may have changed its sizes since (rule A6).
      throw AutogradError(
          "The size of the gradient must match the size of its leaf, whose data "
          "was replaced after the graph was made");
    } else {
      stored = clone(autograd(), grad);
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
         grad.use_count() <= expected_references && grad.sizes() == leaf_.sizes() &&
         grad.strides() == leaf_.strides();
}

std::shared_ptr<Node> find_accumulate_grad(const Tensor& leaf) {
  return leaf.impl().accumulate_grad.lock();
}

namespace {

// Numbers of nodes and tasks mean something within one process only.
Edge own_edge(const Autograd& autograd, std::shared_ptr<Node> node, std::uint32_t slot) {
  ZP_CHECK(node->belongs_to(autograd), "a tensor of one Autograd was used in another");
  return {std::move(node), slot};
}

}  // namespace

Edge gradient_edge(Autograd& autograd, const Tensor& tensor) {
  if (const auto node = tensor.grad_fn()) return own_edge(autograd, node, tensor.output_nr());
  if (!tensor.requires_grad()) return {};
  if (auto node = find_accumulate_grad(tensor)) return own_edge(autograd, std::move(node), 0);
  auto node = std::make_shared<AccumulateGrad>(autograd, tensor);
  tensor.impl().accumulate_grad = node;
  return {std::move(node), 0};
}

}  // namespace zeroproof
