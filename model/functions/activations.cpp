#include "model/functions/activations.h"

#include <numbers>

#include "model/functions/formula.h"
#include "model/functions/rules.h"

namespace zeroproof {
namespace {

using rules::batch_elementwise;
using rules::batch_pointwise;
using rules::Diff;
using rules::save_both;
using rules::save_input;

using Inputs = const TensorList&;
using Args = const OpArgs&;

extern const Op kSigmoid;
extern const Op kSigmoidBackward;
extern const Op kSilu;
extern const Op kSiluBackward;
extern const Op kGelu;
extern const Op kGeluBackward;
extern const Op kErf;
extern const Op kRsqrt;

Tensor sigmoid_backward(Autograd& ag, const Tensor& grad, const Tensor& output) {
  return apply_one(ag, kSigmoidBackward, {grad, output});
}

Wide sigmoid_of(const Wide& x) {
  const Wide divisor = exp(x * -1.0) + 1.0;
  return {x.ops, x.ops.binary(BinaryOp::div, Tensor::number(1.0, DType::float64), divisor.x)};
}

const Op kSigmoid = {
    .name = "SigmoidBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args) {
          return TensorList{sigmoid_of(Wide::of(ops, in[0])).rounded(in[0].dtype())};
        },
    .saves_output = true,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return TensorList{sigmoid_backward(ag, grads[0], node.saved(0))};
        },
    .batch = batch_elementwise<kSigmoid>,
    .jvp = [](Autograd& ag, Inputs, Inputs tangents, Inputs outputs,
              Args) { return TensorList{sigmoid_backward(ag, tangents[0], outputs[0])}; }};

// grad * (1 - output) * output
const Op kSigmoidBackward = {
    .name = "SigmoidBackwardBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args) {
          const Wide output = Wide::of(ops, in[1]);
          const Wide slope = (output * -1.0 + 1.0) * output;
          return TensorList{(Wide::of(ops, in[0]) * slope).rounded(in[0].dtype())};
        },
    .save = save_both,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          TensorList out(2);
          const Diff output{ag, node.saved(1)};
          if (node.needs(0)) out[0] = sigmoid_backward(ag, grads[0], output.x);
          if (node.needs(1))
            out[1] = (Diff{ag, grads[0]} * Diff{ag, node.saved(0)} * (output * -2.0 + 1.0)).x;
          return out;
        },
    .batch = batch_pointwise<kSigmoidBackward>};

template <class T>
T silu_slope(const T& x, const T& sigmoid) {
  return sigmoid * (x * (sigmoid * -1.0 + 1.0) + 1.0);
}

// The fused gradient has no derivative: with create_graph it is composed (as upstream).
Tensor silu_backward(Autograd& ag, const Tensor& grad, const Tensor& x) {
  if (!ag.is_grad_enabled()) return apply_one(ag, kSiluBackward, {grad, x});
  const Tensor output = sigmoid(ag, x);
  const Diff inner = Diff{ag, x} * (Diff{ag, output} * -1.0 + 1.0) + 1.0;
  return mul(ag, mul(ag, grad, output), inner.x);
}

const Op kSilu = {
    .name = "SiluBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args) {
          const Wide x = Wide::of(ops, in[0]);
          return TensorList{(x / (exp(x * -1.0) + 1.0)).rounded(in[0].dtype())};
        },
    .save = save_input,
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{silu_backward(ag, grads[0], node.saved(0))}; },
    .batch = batch_elementwise<kSilu>,
    .jvp = [](Autograd& ag, Inputs in, Inputs tangents, Inputs,
              Args) { return TensorList{silu_backward(ag, tangents[0], in[0])}; }};

const Op kSiluBackward = {.name = "SiluBackwardBackward0",
                          .forward =
                              [](const Ops& ops, Inputs in, Args) {
                                const Wide x = Wide::of(ops, in[1]);
                                const Wide grad =
                                    Wide::of(ops, in[0]) * silu_slope(x, sigmoid_of(x));
                                return TensorList{grad.rounded(in[0].dtype())};
                              },
                          .batch = batch_pointwise<kSiluBackward>};

constexpr double kDensity = std::numbers::inv_sqrtpi / std::numbers::sqrt2;  // 1 / sqrt(2 pi)
constexpr double kTanhFactor = 2.0 * kDensity;                               // sqrt(2 / pi)
constexpr double kTanhCubic = 0.044715;

template <class T>
T tanh_argument(const T& x) {
  return (x + x * x * x * kTanhCubic) * kTanhFactor;
}

template <class T>
T gelu_of(const T& x, bool is_tanh) {
  if (is_tanh) return x * (tanh(tanh_argument(x)) + 1.0) * 0.5;
  return x * (erf(x * (1.0 / std::numbers::sqrt2)) + 1.0) * 0.5;
}

// The derivative: for the exact form the normal distribution plus x times its density.
template <class T>
T gelu_slope(const T& x, bool is_tanh) {
  if (!is_tanh) {
    const T distribution = (erf(x * (1.0 / std::numbers::sqrt2)) + 1.0) * 0.5;
    return distribution + x * exp(x * x * -0.5) * kDensity;
  }
  const T inner = tanh(tanh_argument(x));
  const T argument_slope = (x * x * (3.0 * kTanhCubic) + 1.0) * kTanhFactor;
  return (inner + 1.0) * 0.5 + x * (inner * inner * -1.0 + 1.0) * argument_slope * 0.5;
}

template <class T>
T gelu_curvature(const T& x, bool is_tanh) {
  if (!is_tanh) return exp(x * x * -0.5) * (x * x * -1.0 + 2.0) * kDensity;
  const T inner = tanh(tanh_argument(x));
  const T first = (x * x * (3.0 * kTanhCubic) + 1.0) * kTanhFactor;
  const T second = x * (6.0 * kTanhCubic * kTanhFactor);
  const T sech2 = inner * inner * -1.0 + 1.0;
  return sech2 * (first + x * second * 0.5 - x * inner * first * first);
}

Tensor gelu_backward(Autograd& ag, const Tensor& grad, const Tensor& x, bool is_tanh) {
  return apply_one(ag, kGeluBackward, {grad, x}, {.flag = is_tanh});
}

// args.flag: the tanh form.
const Op kGelu = {
    .name = "GeluBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          return TensorList{gelu_of(Wide::of(ops, in[0]), args.flag).rounded(in[0].dtype())};
        },
    .save = save_input,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return TensorList{gelu_backward(ag, grads[0], node.saved(0), node.args.flag)};
        },
    .batch = batch_elementwise<kGelu>,
    .jvp = [](Autograd& ag, Inputs in, Inputs tangents, Inputs,
              Args args) { return TensorList{gelu_backward(ag, tangents[0], in[0], args.flag)}; }};

const Op kGeluBackward = {
    .name = "GeluBackwardBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args args) {
          const Wide slope = gelu_slope(Wide::of(ops, in[1]), args.flag);
          return TensorList{(Wide::of(ops, in[0]) * slope).rounded(in[0].dtype())};
        },
    .save = save_both,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          TensorList out(2);
          const bool is_tanh = node.args.flag;
          const Diff x{ag, node.saved(1)};
          if (node.needs(0)) out[0] = gelu_backward(ag, grads[0], x.x, is_tanh);
          if (node.needs(1)) {
            const Diff product = Diff{ag, grads[0]} * Diff{ag, node.saved(0)};
            out[1] = (product * gelu_curvature(x, is_tanh)).x;
          }
          return out;
        },
    .batch = batch_pointwise<kGeluBackward>};

Tensor erf_slope(Autograd& ag, const Tensor& x) {
  const Diff input{ag, x};
  return (exp(input * input * -1.0) * (2.0 * std::numbers::inv_sqrtpi)).x;
}

const Op kErf = {
    .name = "ErfBackward0",
    .forward = [](const Ops& ops, Inputs in,
                  Args) { return TensorList{ops.unary(UnaryOp::erf, in[0])}; },
    .save = save_input,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return TensorList{mul(ag, erf_slope(ag, node.saved(0)), grads[0])};
        },
    .batch = batch_elementwise<kErf>,
    .jvp = [](Autograd& ag, Inputs in, Inputs tangents, Inputs,
              Args) { return TensorList{mul(ag, erf_slope(ag, in[0]), tangents[0])}; }};

Tensor rsqrt_backward(Autograd& ag, const Tensor& grad, const Tensor& output) {
  return mul(ag, mul_scalar(ag, grad, -0.5), pow(ag, output, 3.0));
}

const Op kRsqrt = {
    .name = "RsqrtBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args) {
          return TensorList{inverse_root(Wide::of(ops, in[0])).rounded(in[0].dtype())};
        },
    .saves_output = true,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return TensorList{rsqrt_backward(ag, grads[0], node.saved(0))};
        },
    .batch = batch_elementwise<kRsqrt>,
    .jvp = [](Autograd& ag, Inputs, Inputs tangents, Inputs outputs,
              Args) { return TensorList{rsqrt_backward(ag, tangents[0], outputs[0])}; },
    .cast = CastPolicy::float32};

}  // namespace

Tensor sigmoid(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kSigmoid, {x});
}
Tensor silu(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kSilu, {x});
}
Tensor gelu(Autograd& ag, const Tensor& x, GeluForm form) {
  return apply_one(ag, kGelu, {x}, {.flag = form == GeluForm::tanh});
}
Tensor erf(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kErf, {x});
}
Tensor rsqrt(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kRsqrt, {x});
}

}  // namespace zeroproof
