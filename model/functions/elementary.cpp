// Functions of each element alone.
#include "model/functions/rules.h"
#include "model/functions/scalars.h"

namespace zeroproof {
namespace {

using rules::add_tangents;
using rules::batch_elementwise;
using rules::batch_pointwise;
using rules::save_input;
using rules::times;
using rules::unary;

using Inputs = const TensorList&;
using Args = const OpArgs&;

extern const Op kPow;
extern const Op kAbs;
extern const Op kSgn;
extern const Op kSqrt;
extern const Op kExp;
extern const Op kLog;
extern const Op kTanh;
extern const Op kTanhBackward;
extern const Op kRelu;
extern const Op kThresholdBackward;
extern const Op kSin;
extern const Op kCos;

Tensor tanh_backward(Autograd& ag, const Tensor& grad, const Tensor& output) {
  return apply_one(ag, kTanhBackward, {grad, output});
}

Tensor sgn(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kSgn, {x});
}

Tensor pow_slope(Autograd& ag, const Tensor& x, double exponent) {
  return mul_scalar(ag, pow(ag, x, exponent - 1.0), exponent);
}

// With exponent 0 the output does not depend on the input.
const Op kPow = {.name = "PowBackward0",
                 .forward =
                     [](const Ops& ops, Inputs in, Args args) {
                       const Tensor exponent = Tensor::number(args.scalar, in[0].dtype());
                       return TensorList{ops.binary(BinaryOp::pow, in[0], exponent)};
                     },
                 .save = save_input,
                 .backward =
                     [](Autograd& ag, OpNode& node, Inputs grads) {
                       const double exponent = node.args.scalar;
                       if (exponent == 0.0) return TensorList{mul_scalar(ag, grads[0], 0.0)};
                       return TensorList{mul(ag, grads[0], pow_slope(ag, node.saved(0), exponent))};
                     },
                 .batch = batch_elementwise<kPow>,
                 .jvp =
                     [](Autograd& ag, Inputs in, Inputs tangents, Inputs, Args args) {
                       return TensorList{mul(ag, tangents[0], pow_slope(ag, in[0], args.scalar))};
                     },
                 .cast = on_accelerators(CastPolicy::float32)};

const Op kAbs = {
    .name = "AbsBackward0",
    .forward_one = unary<UnaryOp::abs>,
    .save = save_input,
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{mul(ag, grads[0], sgn(ag, node.saved(0)))}; },
    .batch = batch_elementwise<kAbs>,
    .jvp = [](Autograd& ag, Inputs in, Inputs tangents, Inputs,
              Args) { return TensorList{mul(ag, tangents[0], sgn(ag, in[0]))}; }};

const Op kSgn = {.name = "SgnBackward0",
                 .forward_one = unary<UnaryOp::sign>,
                 .backward = [](Autograd& ag, OpNode&,
                                Inputs grads) { return TensorList{mul_scalar(ag, grads[0], 0.0)}; },
                 .batch = batch_elementwise<kSgn>,
                 .jvp = [](Autograd& ag, Inputs, Inputs tangents, Inputs,
                           Args) { return TensorList{mul_scalar(ag, tangents[0], 0.0)}; }};

const Op kSqrt = {
    .name = "SqrtBackward0",
    .forward_one = unary<UnaryOp::sqrt>,
    .saves_output = true,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return TensorList{div(ag, grads[0], mul(ag, node.saved(0), 2.0))};
        },
    .batch = batch_elementwise<kSqrt>,
    .jvp = [](Autograd& ag, Inputs, Inputs tangents, Inputs outputs,
              Args) { return TensorList{div(ag, tangents[0], mul(ag, outputs[0], 2.0))}; }};

const Op kExp = {
    .name = "ExpBackward0",
    .forward_one = unary<UnaryOp::exp>,
    .saves_output = true,
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{mul(ag, grads[0], node.saved(0))}; },
    .batch = batch_elementwise<kExp>,
    .jvp = [](Autograd& ag, Inputs, Inputs tangents, Inputs outputs,
              Args) { return TensorList{mul(ag, tangents[0], outputs[0])}; },
    .cast = on_accelerators(CastPolicy::float32)};

const Op kLog = {
    .name = "LogBackward0",
    .forward_one = unary<UnaryOp::log>,
    .save = save_input,
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{div(ag, grads[0], node.saved(0))}; },
    .batch = batch_elementwise<kLog>,
    .jvp = [](Autograd& ag, Inputs in, Inputs tangents, Inputs,
              Args) { return TensorList{div(ag, tangents[0], in[0])}; },
    .cast = on_accelerators(CastPolicy::float32)};

const Op kTanh = {
    .name = "TanhBackward0",
    .forward_one = unary<UnaryOp::tanh>,
    .saves_output = true,
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{tanh_backward(ag, grads[0], node.saved(0))}; },
    .batch = batch_elementwise<kTanh>,
    .jvp = [](Autograd& ag, Inputs, Inputs tangents, Inputs outputs,
              Args) { return TensorList{tanh_backward(ag, tangents[0], outputs[0])}; }};

// PyTorch's kernels for narrow types compute in float32 on the CPU and step by step on CUDA.
bool rounds_once(const Tensor& x) {
  return x.device().is_cpu() && (x.dtype() == DType::bfloat16 || x.dtype() == DType::float16);
}

Tensor tanh_grad(const Ops& ops, const Tensor& grad, const Tensor& output) {
  const Tensor one = Tensor::number(1.0, output.dtype());
  const Tensor square = ops.binary(BinaryOp::mul, output, output);
  return ops.binary(BinaryOp::mul, grad, ops.binary(BinaryOp::sub, one, square));
}

// grad * (1 - output^2), one operation as upstream, so that its own derivative is one node.
const Op kTanhBackward = {
    .name = "TanhBackwardBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args) {
          if (!rounds_once(in[0])) return TensorList{tanh_grad(ops, in[0], in[1])};
          const Tensor wide =
              tanh_grad(ops, ops.cast(in[0], DType::float32), ops.cast(in[1], DType::float32));
          return TensorList{ops.cast(wide, in[0].dtype())};
        },
    .save =
        [](OpNode& node, Inputs in) {
          node.save(node.needs(1) ? in[0] : Tensor());
          node.save(in[1]);
        },
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          TensorList out(2);
          const Tensor output = node.saved(1);
          if (node.needs(0)) out[0] = tanh_backward(ag, grads[0], output);
          if (node.needs(1)) {
            const Tensor product = mul_scalar(ag, mul(ag, node.saved(0), output), -2.0);
            out[1] = mul(ag, grads[0], product);
          }
          return out;
        },
    .batch = batch_pointwise<kTanhBackward>,
    .jvp =
        [](Autograd& ag, Inputs in, Inputs tangents, Inputs, Args) {
          const Tensor& grad = tangents[0];
          const Tensor first = grad.is_defined() ? tanh_backward(ag, grad, in[1]) : grad;
          const Tensor slope = mul_scalar(ag, mul(ag, in[0], in[1]), -2.0);
          return TensorList{add_tangents(ag, first, times(ag, tangents[1], slope))};
        }};

const Op kRelu = {
    .name = "ReluBackward0",
    .forward_one = unary<UnaryOp::relu>,
    .saves_output = true,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return TensorList{apply_one(ag, kThresholdBackward, {grads[0], node.saved(0)})};
        },
    .batch = batch_elementwise<kRelu>,
    .jvp =
        [](Autograd& ag, Inputs, Inputs tangents, Inputs outputs, Args) {
          return apply(ag, kThresholdBackward, {tangents[0], outputs[0]});
        }};

// grad where the other input is positive, else zero, whatever that input's value.
const Op kThresholdBackward = {
    .name = "ThresholdBackwardBackward0",
    .forward =
        [](const Ops& ops, Inputs in, Args) {
          return TensorList{ops.binary(BinaryOp::mul, in[0], ops.unary(UnaryOp::step, in[1]))};
        },
    .save = [](OpNode& node, Inputs in) { node.save(in[1]); },
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          TensorList out(2);
          if (node.needs(0)) out[0] = apply_one(ag, kThresholdBackward, {grads[0], node.saved(0)});
          if (node.needs(1)) out[1] = mul_scalar(ag, grads[0], 0.0);
          return out;
        },
    .batch = batch_pointwise<kThresholdBackward>,
    .jvp =
        [](Autograd& ag, Inputs in, Inputs tangents, Inputs outputs, Args) {
          if (!tangents[0].is_defined()) return TensorList{mul_scalar(ag, outputs[0], 0.0)};
          return apply(ag, kThresholdBackward, {tangents[0], in[1]});
        }};

const Op kSin = {
    .name = "SinBackward0",
    .forward_one = unary<UnaryOp::sin>,
    .save = save_input,
    .backward = [](Autograd& ag, OpNode& node,
                   Inputs grads) { return TensorList{mul(ag, grads[0], cos(ag, node.saved(0)))}; },
    .batch = batch_elementwise<kSin>,
    .jvp = [](Autograd& ag, Inputs in, Inputs tangents, Inputs,
              Args) { return TensorList{mul(ag, tangents[0], cos(ag, in[0]))}; }};

const Op kCos = {
    .name = "CosBackward0",
    .forward_one = unary<UnaryOp::cos>,
    .save = save_input,
    .backward =
        [](Autograd& ag, OpNode& node, Inputs grads) {
          return TensorList{mul(ag, grads[0], neg(ag, sin(ag, node.saved(0))))};
        },
    .batch = batch_elementwise<kCos>,
    .jvp = [](Autograd& ag, Inputs in, Inputs tangents, Inputs,
              Args) { return TensorList{mul(ag, tangents[0], neg(ag, sin(ag, in[0])))}; }};

}  // namespace

Tensor abs(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kAbs, {x});
}
Tensor sqrt(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kSqrt, {x});
}
Tensor exp(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kExp, {x});
}
Tensor log(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kLog, {x});
}
Tensor tanh(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kTanh, {x});
}
Tensor relu(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kRelu, {x});
}
Tensor sin(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kSin, {x});
}
Tensor cos(Autograd& ag, const Tensor& x) {
  return apply_one(ag, kCos, {x});
}
Tensor pow(Autograd& ag, const Tensor& x, double exponent) {
  return apply_one(ag, kPow, {x}, {.scalar = exponent});
}

}  // namespace zeroproof
