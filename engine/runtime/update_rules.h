#pragma once

#include <cstdint>

#include "zeroproof/internal/model/device_code.h"
#include "zeroproof/model/dtype.h"
#include "zeroproof/model/optim/options.h"

namespace zeroproof {

// The updates of optim::Adam and optim::Sgd, an element at a time, with the constants that do not
// vary from element to element rounded as upstream's kernels take them. One source for every
// runtime: `Rounding` rounds a double to its dtype, and its root() takes a rounded square root.

struct AdamElement {
  double parameter = 0.0;
  double grad = 0.0;
  double exp_avg = 0.0;
  double exp_avg_sq = 0.0;
};

struct AdamRule {
  DType parameter, grad, exp_avg, exp_avg_sq;
  bool is_maximizing, is_decaying, is_decay_decoupled;
  double correction2, rate, decay, coupled_decay, lerp, beta2, rest2, eps;
};

struct SgdElement {
  double parameter = 0.0;
  double grad = 0.0;
  double momentum_buffer = 0.0;
};

struct SgdRule {
  DType parameter, grad, momentum_buffer;
  bool is_first, has_momentum, is_maximizing, is_nesterov, is_decaying;
  double rate, decay, momentum, rest, grad_momentum;
};

struct AdamUpdate;
struct SgdUpdate;
AdamRule adam_rule(const AdamUpdate& update);
// The parts of it that differ from step to step.
void set_step(AdamRule& rule, const optim::AdamOptions& options, std::int64_t step);
SgdRule sgd_rule(const SgdUpdate& update);

template <class Rounding>
ZP_HOST_DEVICE void update_adam(const AdamRule& rule, AdamElement& of) {
  const Rounding parameter{rule.parameter}, avg{rule.exp_avg}, square{rule.exp_avg_sq};
  double g = rule.is_maximizing ? -of.grad : of.grad;
  if (rule.is_decaying) {
    if (rule.is_decay_decoupled)
      of.parameter = parameter(of.parameter * rule.decay);
    else
      g = Rounding{rule.grad}(g + of.parameter * rule.coupled_decay);
  }
  const double distance = g - of.exp_avg;  // from the nearer end
  of.exp_avg =
      avg(rule.lerp < 0.5 ? of.exp_avg + distance * rule.lerp : g - distance * (1.0 - rule.lerp));
  of.exp_avg_sq = square(of.exp_avg_sq * rule.beta2);
  of.exp_avg_sq = square(of.exp_avg_sq + g * rule.rest2 * g);
  const double root = square(square.root(of.exp_avg_sq) / rule.correction2);
  of.parameter = parameter(of.parameter + of.exp_avg * rule.rate / square(root + rule.eps));
}

// The first buffer is the gradient itself, not dampened.
template <class Rounding>
ZP_HOST_DEVICE void update_sgd(const SgdRule& rule, SgdElement& of) {
  const Rounding gradient{rule.grad}, buffer{rule.momentum_buffer};
  double g = rule.is_maximizing ? -of.grad : of.grad;
  if (rule.is_decaying) g = gradient(g + of.parameter * rule.decay);
  if (rule.has_momentum) {
    double& b = of.momentum_buffer;
    b = rule.is_first ? buffer(g) : buffer(buffer(b * rule.momentum) + g * rule.rest);
    g = rule.is_nesterov ? gradient(g + b * rule.grad_momentum) : b;
  }
  of.parameter = Rounding{rule.parameter}(of.parameter + g * rule.rate);
}

}  // namespace zeroproof
