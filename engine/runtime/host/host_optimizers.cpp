#include <cmath>

#include "engine/runtime/host/elements.h"
#include "engine/runtime/host/host_kernels.h"
#include "engine/runtime/host/rounding.h"
#include "model/check.h"

namespace zeroproof::host {
namespace {

double* flat(Span span, std::int64_t elements) {
  ZP_CHECK(span.elements == elements, "an update of spans of different lengths");
  ZP_CHECK(span.is_empty() || is_dense(span), "an update of a tensor with gaps");
  return span.is_empty() ? nullptr : begin_of(span);
}

// One element of optim::Adam::update, each kernel of it rounded as there.
class AdamElement {
 public:
  explicit AdamElement(const AdamUpdate& update)
      : options_(update.options),
        parameter_{update.parameter.dtype()},
        grad_{update.grad.dtype()},
        avg_{update.exp_avg.dtype()},
        square_{update.exp_avg_sq.dtype()} {
    const auto steps = static_cast<double>(update.step);
    const double correction1 = 1.0 - std::pow(options_.beta1, steps);
    correction2_ = square_.number(std::sqrt(1.0 - std::pow(options_.beta2, steps)));
    rate_ = parameter_.number(-(options_.lr / correction1));
    decay_ = parameter_.number(1.0 - options_.lr * options_.weight_decay);
    coupled_decay_ = grad_.number(options_.weight_decay);
    lerp_ = avg_.number(1.0 - options_.beta1);
    beta2_ = square_.number(options_.beta2);
    rest2_ = square_.number(1.0 - options_.beta2);
    eps_ = square_.number(options_.eps);
  }

  void apply(double& p, double g, double& m, double& v) const {
    if (options_.is_maximizing) g = -g;
    if (options_.weight_decay != 0.0) {
      if (options_.is_decay_decoupled)
        p = parameter_(p * decay_);
      else
        g = grad_(g + p * coupled_decay_);
    }
    const double distance = g - m;  // from the nearer end
    m = avg_(lerp_ < 0.5 ? m + distance * lerp_ : g - distance * (1.0 - lerp_));
    v = square_(v * beta2_);
    v = square_(v + g * rest2_ * g);
    const double root = square_(square_(std::sqrt(v)) / correction2_);
    p = parameter_(p + m * rate_ / square_(root + eps_));
  }

 private:
  const optim::AdamOptions& options_;
  Rounding parameter_, grad_, avg_, square_;
  double correction2_, rate_, decay_, coupled_decay_, lerp_, beta2_, rest2_, eps_;
};

// The same for optim::Sgd::update.
class SgdElement {
 public:
  explicit SgdElement(const SgdUpdate& update)
      : options_(update.options),
        is_first_(update.step == 1),
        parameter_{update.parameter.dtype()},
        grad_{update.grad.dtype()},
        buffer_{has_momentum(update) ? update.momentum_buffer.dtype() : grad_.dtype} {}

  static bool has_momentum(const SgdUpdate& update) { return update.options.momentum != 0.0; }

  void apply(double& p, double g, double* buffer) const {
    if (options_.is_maximizing) g = -g;
    if (options_.weight_decay != 0.0) g = grad_(g + p * grad_.number(options_.weight_decay));
    if (buffer) g = momentum(g, *buffer);
    p = parameter_(p + g * parameter_.number(-options_.lr));
  }

 private:
  // The first buffer is the gradient itself, not dampened.
  double momentum(double g, double& b) const {
    if (is_first_) {
      b = buffer_(g);
    } else {
      b = buffer_(b * buffer_.number(options_.momentum));
      b = buffer_(b + g * buffer_.number(1.0 - options_.dampening));
    }
    return options_.is_nesterov ? grad_(g + b * grad_.number(options_.momentum)) : b;
  }

  const optim::SgdOptions& options_;
  bool is_first_;
  Rounding parameter_, grad_, buffer_;
};

}  // namespace

void HostKernels::adam(Stream& stream, const AdamUpdate& update) {
  const std::int64_t elements = update.parameter.elements;
  note(stream, update.parameter, update.grad);
  note_target(stream, update.exp_avg);
  note_target(stream, update.exp_avg_sq);
  double* const parameter = flat(update.parameter, elements);
  const double* const grad = flat(update.grad, elements);
  double* const avg = flat(update.exp_avg, elements);
  double* const square = flat(update.exp_avg_sq, elements);
  const AdamElement element(update);
  for (std::int64_t i = 0; i < elements; ++i)
    element.apply(parameter[i], grad[i], avg[i], square[i]);
}

void HostKernels::sgd(Stream& stream, const SgdUpdate& update) {
  const std::int64_t elements = update.parameter.elements;
  const bool has_momentum = SgdElement::has_momentum(update);
  note(stream, update.parameter, update.grad);
  if (has_momentum) note_target(stream, update.momentum_buffer);
  double* const parameter = flat(update.parameter, elements);
  const double* const grad = flat(update.grad, elements);
  double* const buffer = has_momentum ? flat(update.momentum_buffer, elements) : nullptr;
  const SgdElement element(update);
  for (std::int64_t i = 0; i < elements; ++i)
    element.apply(parameter[i], grad[i], buffer ? buffer + i : nullptr);
}

}  // namespace zeroproof::host
