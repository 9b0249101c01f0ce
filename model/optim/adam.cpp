#include "model/optim/adam.h"

#include <cmath>

#include "model/optim/kernels.h"

namespace zeroproof::optim {

Adam::Adam(const Ops& ops, const TensorList& parameters, const AdamOptions& options)
    : Adam(ops, std::vector<ParamGroup<AdamOptions>>{{parameters, options}}) {}

Adam::Adam(const Ops& ops, const std::vector<ParamGroup<AdamOptions>>& groups) : Optimizer(ops) {
  for (const ParamGroup<AdamOptions>& group : groups) {
    add_parameters(group.parameters);
    options_.resize(parameters().size(), group.options);
  }
  states_.resize(parameters().size());
}

void Adam::step() {
  for (std::size_t i = 0; i < parameters().size(); ++i)
    if (parameters()[i].grad().is_defined())
      update(ops(), parameters()[i], parameters()[i].grad(), states_[i], options_[i]);
}

std::vector<StateEntry> Adam::state_entries(std::size_t parameter) const {
  const State& state = states_[parameter];
  if (state.step == 0) return {};
  const auto steps = static_cast<double>(state.step);
  return {{"step", Tensor::full({}, steps)},
          {"exp_avg", state.exp_avg},
          {"exp_avg_sq", state.exp_avg_sq}};
}

void Adam::update(const Ops& ops, const Tensor& parameter, Tensor grad, State& state,
                  const AdamOptions& options) {
  if (state.step++ == 0) {
    state.exp_avg = zeros_like(parameter);
    state.exp_avg_sq = zeros_like(parameter);
  }
  if (options.is_maximizing) grad = neg(ops, grad);
  if (options.weight_decay != 0.0 && options.is_decay_decoupled)
    mul_(ops, parameter, 1.0 - options.lr * options.weight_decay);
  if (options.weight_decay != 0.0 && !options.is_decay_decoupled)
    grad = add(ops, grad, {parameter, options.weight_decay});
  lerp_(ops, state.exp_avg, {grad, 1.0 - options.beta1});
  mul_(ops, state.exp_avg_sq, options.beta2);
  addcmul_(ops, state.exp_avg_sq, {grad, grad, 1.0 - options.beta2});

  const auto steps = static_cast<double>(state.step);
  const double correction1 = 1.0 - std::pow(options.beta1, steps);
  const double correction2 = std::sqrt(1.0 - std::pow(options.beta2, steps));
  const Tensor root = div(ops, sqrt(ops, state.exp_avg_sq), correction2);
  const Tensor divisor = add(ops, root, options.eps);
  addcdiv_(ops, parameter, {state.exp_avg, divisor, -(options.lr / correction1)});
}

}  // namespace zeroproof::optim
