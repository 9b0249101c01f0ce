// Operations that write over their input, through all layers of function transforms.
#include "model/functions/rules.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

// What PyTorch refuses at one level or another. A vmap that does not batch the tensor is passed.
void check_writable(Autograd& ag, const Tensor& x) {
  Tensor at_level = x;
  for (auto frame = ag.local().transforms; frame; frame = frame->below) {
    const bool is_of_this = is_of_level(at_level, *frame);
    if (!is_of_this && frame->kind != TransformKind::vmap)
      throw AutogradError(
          "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call "
          "an in-place operation that would mutate a captured Tensor");
    if (ag.is_grad_enabled() && at_level.is_leaf() && at_level.requires_grad())
      throw AutogradError(
          "a leaf Variable that requires grad is being used in an in-place operation.");
    at_level = unwrap(at_level, *frame);
  }
  if (ag.is_grad_enabled() && at_level.is_leaf() && at_level.requires_grad())
    throw AutogradError(
        "a leaf Variable that requires grad is being used in an in-place operation.");
}

// Rule H2: the tensor gets a new grad_fn, at each level its own; hooks registered before stay with
// the old one.
void take_over(Autograd& ag, const Tensor& x, const Tensor& result) {
  TensorImpl& impl = x.impl();
  impl.grad_fn = result.grad_fn();
  impl.output_nr = result.output_nr();
  if (impl.retains_grad && impl.grad_fn) impl.grad_fn->retain_grad_of(x);
  if (!impl.wrapper) {
    ag.ops().copy_in_place(x, result.detach());
    return;
  }
  impl.wrapper->tangent = result.wrapper()->tangent;
  take_over(ag, impl.wrapper->inner, result.wrapper()->inner);
}

}  // namespace

void mul_in_place(Autograd& ag, Tensor& x, double factor) {
  x = without_dead_wrappers(x);
  check_writable(ag, x);
  take_over(ag, x, mul(ag, x, factor));
}

}  // namespace zeroproof
