#include "model/optim/optimizer.h"

namespace zeroproof::optim {

void Optimizer::zero_grad(ZeroGrad how) const {
  for (const Tensor& parameter : parameters_) {
    const Tensor grad = parameter.grad();
    if (!grad.is_defined()) continue;
    if (how == ZeroGrad::to_none) {
      parameter.set_grad({});
      continue;
    }
    // What create_graph left on it goes.
    const Tensor plain = grad.grad_fn() ? grad.detach() : grad;
    ops_.copy_in_place(plain, Tensor::full({}, 0.0, grad.dtype()));
    parameter.set_grad(plain);
  }
}

void Optimizer::add_parameters(const TensorList& parameters) {
  parameters_.insert(parameters_.end(), parameters.begin(), parameters.end());
}

}  // namespace zeroproof::optim
