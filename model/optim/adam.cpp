#include "model/optim/adam.h"

#include <cmath>
#include <utility>

namespace zeroproof::optim {
namespace {

Tensor scaled(const Ops& ops, const Tensor& x, double factor) {
  return ops.binary(BinaryOp::mul, x, Tensor::full({}, factor, x.dtype()));
}

}  // namespace

Adam::Adam(const Ops& ops, TensorList parameters, const AdamOptions& options)
    : ops_(ops),
      parameters_(std::move(parameters)),
      options_(options),
      states_(parameters_.size()) {}

void Adam::step() {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].grad().is_defined()) update(parameters_[i], states_[i]);
}

void Adam::zero_grad() {
  for (const Tensor& parameter : parameters_) parameter.set_grad({});
}

void Adam::update(const Tensor& parameter, State& state) const {
  if (state.step++ == 0) {
    state.exp_avg = Tensor::full(parameter.sizes(), 0.0, parameter.dtype());
    state.exp_avg_sq = Tensor::full(parameter.sizes(), 0.0, parameter.dtype());
  }
  Tensor grad = parameter.grad();
  if (options_.is_decay_decoupled) {
    ops_.copy_in_place(parameter,
                       scaled(ops_, parameter, 1.0 - options_.lr * options_.weight_decay));
  } else if (options_.weight_decay != 0.0) {
    grad = ops_.binary(BinaryOp::add, grad, scaled(ops_, parameter, options_.weight_decay));
  }
  const Tensor distance = ops_.binary(BinaryOp::sub, grad, state.exp_avg);
  ops_.add_in_place(state.exp_avg, scaled(ops_, distance, 1.0 - options_.beta1));
  const Tensor square = ops_.binary(BinaryOp::mul, grad, grad);
  ops_.copy_in_place(state.exp_avg_sq, scaled(ops_, state.exp_avg_sq, options_.beta2));
  ops_.add_in_place(state.exp_avg_sq, scaled(ops_, square, 1.0 - options_.beta2));

  const auto steps = static_cast<double>(state.step);
  const double correction1 = 1.0 - std::pow(options_.beta1, steps);
  const double correction2 = std::sqrt(1.0 - std::pow(options_.beta2, steps));
  const Tensor root = ops_.unary(UnaryOp::sqrt, state.exp_avg_sq);
  const Tensor eps = Tensor::full({}, options_.eps, parameter.dtype());
  const Tensor divisor = ops_.binary(BinaryOp::add, scaled(ops_, root, 1.0 / correction2), eps);
  const Tensor direction = ops_.binary(BinaryOp::div, state.exp_avg, divisor);
  ops_.add_in_place(parameter, scaled(ops_, direction, -options_.lr / correction1));
}

}  // namespace zeroproof::optim
