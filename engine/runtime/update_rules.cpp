#include "engine/runtime/update_rules.h"

#include <cmath>

#include "zeroproof/internal/engine/runtime/kernels.h"

namespace zeroproof {
namespace {

// A number beside a tensor of this dtype, as upstream's kernels take it. By a call: g++ 12 at -O2
// drops a conversion to float and back where it makes vectors of neighbours.
double number(DType dtype, double value) {
  return dtype == DType::float64 ? value : round_to(DType::float32, value);
}

}  // namespace

AdamRule adam_rule(const AdamUpdate& update) {
  const optim::AdamOptions& options = update.options;
  const DType parameter = update.parameter.dtype();
  const DType grad = update.grad.dtype();
  const DType avg = update.exp_avg.dtype();
  const DType square = update.exp_avg_sq.dtype();
  AdamRule rule{
      .parameter = parameter,
      .grad = grad,
      .exp_avg = avg,
      .exp_avg_sq = square,
      .is_maximizing = options.is_maximizing,
      .is_decaying = options.weight_decay != 0.0,
      .is_decay_decoupled = options.is_decay_decoupled,
      .correction2 = 1.0,
      .rate = 0.0,
      .decay = number(parameter, 1.0 - options.lr * options.weight_decay),
      .coupled_decay = number(grad, options.weight_decay),
      .lerp = number(avg, 1.0 - options.beta1),
      .beta2 = number(square, options.beta2),
      .rest2 = number(square, 1.0 - options.beta2),
      .eps = number(square, options.eps),
  };
  set_step(rule, options, update.step);
  return rule;
}

void set_step(AdamRule& rule, const optim::AdamOptions& options, std::int64_t step) {
  const auto steps = static_cast<double>(step);
  const double correction1 = 1.0 - std::pow(options.beta1, steps);
  rule.correction2 = number(rule.exp_avg_sq, std::sqrt(1.0 - std::pow(options.beta2, steps)));
  rule.rate = number(rule.parameter, -(options.lr / correction1));
}

SgdRule sgd_rule(const SgdUpdate& update) {
  const optim::SgdOptions& options = update.options;
  const DType parameter = update.parameter.dtype();
  const DType grad = update.grad.dtype();
  const bool has_momentum = options.momentum != 0.0;
  const DType buffer = has_momentum ? update.momentum_buffer.dtype() : grad;
  return {
      .parameter = parameter,
      .grad = grad,
      .momentum_buffer = buffer,
      .is_first = update.step == 1,
      .has_momentum = has_momentum,
      .is_maximizing = options.is_maximizing,
      .is_nesterov = options.is_nesterov,
      .is_decaying = options.weight_decay != 0.0,
      .rate = number(parameter, -options.lr),
      .decay = number(grad, options.weight_decay),
      .momentum = number(buffer, options.momentum),
      .rest = number(buffer, 1.0 - options.dampening),
      .grad_momentum = number(grad, options.momentum),
  };
}

}  // namespace zeroproof
