#include "model/optim/sgd.h"

#include "model/optim/kernels.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof::optim {

Sgd::Sgd(const Ops& ops, const TensorList& parameters, const SgdOptions& options)
    : Sgd(ops, std::vector<ParamGroup<SgdOptions>>{{parameters, options}}) {}

Sgd::Sgd(const Ops& ops, const std::vector<ParamGroup<SgdOptions>>& groups) : Optimizer(ops) {
  for (const ParamGroup<SgdOptions>& group : groups) {
    const SgdOptions& options = group.options;
    if (options.is_nesterov && (options.momentum <= 0.0 || options.dampening != 0.0))
      throw AutogradError("Nesterov momentum requires a momentum and zero dampening");
    add_parameters(group.parameters);
    options_.resize(parameters().size(), options);
  }
  momentum_buffers_.resize(parameters().size());
}

void Sgd::step() {
  for (std::size_t i = 0; i < parameters().size(); ++i)
    if (parameters()[i].grad().is_defined())
      update(ops(), parameters()[i], parameters()[i].grad(), momentum_buffers_[i], options_[i]);
}

std::vector<StateEntry> Sgd::state_entries(std::size_t parameter) const {
  const Tensor& buffer = momentum_buffers_[parameter];
  if (!buffer.is_defined()) return {};
  return {{"momentum_buffer", buffer}};
}

// The first buffer is the gradient itself, not dampened.
void Sgd::update(const Ops& ops, const Tensor& parameter, Tensor grad, Tensor& momentum_buffer,
                 const SgdOptions& options) {
  if (options.is_maximizing) grad = neg(ops, grad);
  if (options.weight_decay != 0.0) grad = add(ops, grad, {parameter, options.weight_decay});
  if (options.momentum != 0.0) {
    if (momentum_buffer.is_defined()) {
      mul_(ops, momentum_buffer, options.momentum);
      add_(ops, momentum_buffer, {grad, 1.0 - options.dampening});
    } else {
      momentum_buffer = ops.cast(grad, grad.dtype());
    }
    grad =
        options.is_nesterov ? add(ops, grad, {momentum_buffer, options.momentum}) : momentum_buffer;
  }
  add_(ops, parameter, {grad, -options.lr});
}

}  // namespace zeroproof::optim
