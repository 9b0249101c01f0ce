// Operations on single elements, their broadcasting and their sums.
#include <cmath>
#include <utility>

#include "model/autograd.h"
#include "model/functions.h"
#include "model/op_node.h"
#include "model/tensor_impl.h"

namespace zeroproof {
namespace {

using Formula = OpNode::Formula;

// The gradient that a broadcast input gets is summed down when it is delivered (rule E5).
const Formula kAdd = {
    "AddBackward0", [](Autograd&, OpNode& node, const TensorList& grads) {
      return TensorList{node.needs(0) ? grads[0] : Tensor(), node.needs(1) ? grads[0] : Tensor()};
    }};

const Formula kSub = {"SubBackward0", [](Autograd& ag, OpNode& node, const TensorList& grads) {
                        TensorList out(2);
                        if (!grads[0].is_defined()) return out;
                        if (node.needs(1)) out[1] = neg(ag, grads[0]);
                        if (node.needs(0)) out[0] = grads[0];
                        return out;
                      }};

const Formula kMul = {"MulBackward0", [](Autograd& ag, OpNode& node, const TensorList& grads) {
                        TensorList out(2);
                        if (!grads[0].is_defined()) return out;
                        if (node.needs(1)) out[1] = mul(ag, grads[0], node.saved(0));
                        if (node.needs(0)) out[0] = mul(ag, grads[0], node.saved(1));
                        return out;
                      }};

const Formula kDiv = {"DivBackward0", [](Autograd& ag, OpNode& node, const TensorList& grads) {
                        TensorList out(2);
                        if (!grads[0].is_defined()) return out;
                        const Tensor divisor = node.saved(1);
                        if (node.needs(1)) {
                          const Tensor quotient = div(ag, div(ag, node.saved(0), divisor), divisor);
                          out[1] = mul(ag, neg(ag, grads[0]), quotient);
                        }
                        if (node.needs(0)) out[0] = div(ag, grads[0], divisor);
                        return out;
                      }};

// A formula of one input: calls f(ag, node, grad) unless the gradient is undefined.
template <class F>
TensorList unary_grad(Autograd& ag, OpNode& node, const TensorList& grads, F f) {
  if (!grads[0].is_defined()) return {Tensor()};
  return {f(ag, node, grads[0])};
}

#define ZP_UNARY_FORMULA(variable, name, expression)                                       \
  const Formula variable = {                                                               \
      name, [](Autograd& autograd, OpNode& op_node, const TensorList& grads) {             \
        return unary_grad(autograd, op_node, grads,                                        \
                          []([[maybe_unused]] Autograd& ag, [[maybe_unused]] OpNode& node, \
                             const Tensor& grad) -> Tensor { return expression; });        \
      }}

Tensor tanh_backward(Autograd& ag, const Tensor& grad, const Tensor& output);

Tensor mul_scalar(Autograd& ag, const Tensor& x, double factor);

Tensor pow_backward(Autograd& ag, const Tensor& grad, const Tensor& x, double exponent) {
  return mul(ag, grad, mul_scalar(ag, pow(ag, x, exponent - 1.0), exponent));
}

Tensor step(Autograd& ag, const Tensor& x) {
  return ag.ops().unary(UnaryOp::step, x);
}

ZP_UNARY_FORMULA(kNeg, "NegBackward0", neg(ag, grad));
ZP_UNARY_FORMULA(kMulScalar, "MulBackward1", mul_scalar(ag, grad, node.scalar));
ZP_UNARY_FORMULA(kPow, "PowBackward0", pow_backward(ag, grad, node.saved(0), node.scalar));
ZP_UNARY_FORMULA(kAbs, "AbsBackward0", mul(ag, grad, ag.ops().unary(UnaryOp::sign, node.saved(0))));
ZP_UNARY_FORMULA(kSqrt, "SqrtBackward0", div(ag, grad, mul(ag, node.saved(0), 2.0)));
ZP_UNARY_FORMULA(kTanh, "TanhBackward0", tanh_backward(ag, grad, node.saved(0)));
ZP_UNARY_FORMULA(kRelu, "ReluBackward0", mul(ag, grad, step(ag, node.saved(0))));
ZP_UNARY_FORMULA(kSin, "SinBackward0", mul(ag, grad, cos(ag, node.saved(0))));
ZP_UNARY_FORMULA(kCos, "CosBackward0", mul(ag, grad, neg(ag, sin(ag, node.saved(0)))));
ZP_UNARY_FORMULA(kSum, "SumBackward0", expand(ag, grad, node.sizes));
ZP_UNARY_FORMULA(kSumTo, "SumBackward1", expand(ag, grad, node.sizes));
ZP_UNARY_FORMULA(kExpand, "ExpandBackward0", sum_to(ag, grad, node.sizes));
ZP_UNARY_FORMULA(kClone, "CloneBackward0", grad);

#undef ZP_UNARY_FORMULA

// grad * (1 - output^2), one operation as upstream, so that its own derivative is one node.
const Formula kTanhBackward = {
    "TanhBackwardBackward0", [](Autograd& ag, OpNode& node, const TensorList& grads) {
      TensorList out(2);
      if (!grads[0].is_defined()) return out;
      const Tensor output = node.saved(1);
      if (node.needs(0)) out[0] = tanh_backward(ag, grads[0], output);
      if (node.needs(1)) {
        const Tensor product = mul(ag, mul(ag, node.saved(0), output), -2.0);
        out[1] = mul(ag, grads[0], product);
      }
      return out;
    }};

Tensor tanh_backward(Autograd& ag, const Tensor& grad, const Tensor& output) {
  const auto node = make_op_node(ag, kTanhBackward, {&grad, &output});
  if (node) {
    node->save(grad);
    node->save(output);
  }
  const Ops& ops = ag.ops();
  const Tensor one = Tensor::full({}, 1.0, output.dtype());
  const Tensor slope = ops.binary(BinaryOp::sub, one, ops.binary(BinaryOp::mul, output, output));
  return with_grad_fn(ops.binary(BinaryOp::mul, grad, slope), node);
}

// A number that no Python expression wrapped into a tensor has no edge of its own.
Tensor mul_scalar(Autograd& ag, const Tensor& x, double factor) {
  const auto node = make_op_node(ag, kMulScalar, {&x});
  if (node) node->scalar = factor;
  const Tensor scalar = Tensor::full({}, factor, x.dtype());
  return with_grad_fn(ag.ops().binary(BinaryOp::mul, x, scalar), node);
}

enum class Saves { nothing, input, output };

Tensor unary(Autograd& ag, UnaryOp op, const Tensor& x, const Formula& formula, Saves saves) {
  const auto node = make_op_node(ag, formula, {&x});
  if (node && saves == Saves::input) node->save(x);
  Tensor result = with_grad_fn(ag.ops().unary(op, x), node);
  if (node && saves == Saves::output) node->save_output(result);
  return result;
}

Tensor binary(Autograd& ag, BinaryOp op, const Tensor& a, const Tensor& b, const Formula& formula) {
  const auto node = make_op_node(ag, formula, {&a, &b});
  if (node && (op == BinaryOp::mul || op == BinaryOp::div)) {
    const bool is_left_needed = node->needs(1);
    const bool is_right_needed = node->needs(0) || op == BinaryOp::div;
    node->save(is_left_needed ? a : Tensor());
    node->save(is_right_needed ? b : Tensor());
  }
  return with_grad_fn(ag.ops().binary(op, a, b), node);
}

Tensor scalar_like(const Tensor& x, double value) {
  return Tensor::full({}, value, x.dtype());
}

}  // namespace

Tensor add(Autograd& ag, const Tensor& a, const Tensor& b) {
  return binary(ag, BinaryOp::add, a, b, kAdd);
}
Tensor add(Autograd& ag, const Tensor& a, double b) {
  return add(ag, a, scalar_like(a, b));
}
Tensor sub(Autograd& ag, const Tensor& a, const Tensor& b) {
  return binary(ag, BinaryOp::sub, a, b, kSub);
}
Tensor mul(Autograd& ag, const Tensor& a, const Tensor& b) {
  return binary(ag, BinaryOp::mul, a, b, kMul);
}
Tensor mul(Autograd& ag, const Tensor& a, double b) {
  return mul(ag, a, scalar_like(a, b));
}
Tensor div(Autograd& ag, const Tensor& a, const Tensor& b) {
  return binary(ag, BinaryOp::div, a, b, kDiv);
}
Tensor div(Autograd& ag, const Tensor& a, double b) {
  return div(ag, a, scalar_like(a, b));
}
Tensor neg(Autograd& ag, const Tensor& x) {
  return unary(ag, UnaryOp::neg, x, kNeg, Saves::nothing);
}
Tensor abs(Autograd& ag, const Tensor& x) {
  return unary(ag, UnaryOp::abs, x, kAbs, Saves::input);
}
Tensor sqrt(Autograd& ag, const Tensor& x) {
  return unary(ag, UnaryOp::sqrt, x, kSqrt, Saves::output);
}
Tensor tanh(Autograd& ag, const Tensor& x) {
  return unary(ag, UnaryOp::tanh, x, kTanh, Saves::output);
}
Tensor relu(Autograd& ag, const Tensor& x) {
  return unary(ag, UnaryOp::relu, x, kRelu, Saves::output);
}
Tensor sin(Autograd& ag, const Tensor& x) {
  return unary(ag, UnaryOp::sin, x, kSin, Saves::input);
}
Tensor cos(Autograd& ag, const Tensor& x) {
  return unary(ag, UnaryOp::cos, x, kCos, Saves::input);
}

Tensor pow(Autograd& ag, const Tensor& x, double exponent) {
  const auto node = make_op_node(ag, kPow, {&x});
  if (node) {
    node->save(x);
    node->scalar = exponent;
  }
  return with_grad_fn(ag.ops().binary(BinaryOp::pow, x, scalar_like(x, exponent)), node);
}

Tensor sum(Autograd& ag, const Tensor& x) {
  const auto node = make_op_node(ag, kSum, {&x});
  if (node) node->sizes = x.sizes();
  return with_grad_fn(ag.ops().sum(x), node);
}

Tensor sum_to(Autograd& ag, const Tensor& x, const Shape& sizes) {
  const auto node = make_op_node(ag, kSumTo, {&x});
  if (node) node->sizes = x.sizes();
  return with_grad_fn(ag.ops().sum_to(x, sizes), node);
}

Tensor expand(Autograd& ag, const Tensor& x, const Shape& sizes) {
  const auto node = make_op_node(ag, kExpand, {&x});
  if (node) node->sizes = x.sizes();
  Tensor wide = broadcast_to(x, sizes);
  return with_grad_fn(wide.is_same(x) ? x.detach() : std::move(wide), node);
}

Tensor clone(Autograd& ag, const Tensor& x) {
  const auto node = make_op_node(ag, kClone, {&x});
  return with_grad_fn(ag.ops().cast(x, x.dtype()), node);
}

Tensor sq(Autograd& ag, const Tensor& x) {
  return sum(ag, pow(ag, x, 2.0));
}

}  // namespace zeroproof
