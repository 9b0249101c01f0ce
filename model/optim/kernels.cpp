#include "model/optim/kernels.h"

#include "model/wide.h"

namespace zeroproof::optim {
namespace {

double number_for(const Tensor& x, double value) {
  return x.dtype() == DType::float64 ? value : round_to(DType::float32, value);
}

}  // namespace

Tensor add(const Ops& ops, const Tensor& x, const Weighted& y) {
  const Wide term = Wide::of(ops, y.x) * number_for(x, y.factor);
  return (Wide::of(ops, x) + term).rounded(x.dtype());
}

void add_(const Ops& ops, const Tensor& target, const Weighted& y) {
  ops.add_in_place(target, (Wide::of(ops, y.x) * number_for(target, y.factor)).x);
}

void mul_(const Ops& ops, const Tensor& target, double factor) {
  ops.copy_in_place(target, (Wide::of(ops, target) * number_for(target, factor)).x);
}

// From the nearer end, as upstream.
void lerp_(const Ops& ops, const Tensor& target, const Weighted& end) {
  const double factor = number_for(target, end.factor);
  const Wide distance = Wide::of(ops, end.x) - Wide::of(ops, target);
  if (factor < 0.5) {
    ops.add_in_place(target, (distance * factor).x);
  } else {
    ops.copy_in_place(target, (Wide::of(ops, end.x) - distance * (1.0 - factor)).x);
  }
}

void addcmul_(const Ops& ops, const Tensor& target, const Pair& pair) {
  const Wide a = Wide::of(ops, pair.a) * number_for(target, pair.factor);
  ops.add_in_place(target, (a * Wide::of(ops, pair.b)).x);
}

void addcdiv_(const Ops& ops, const Tensor& target, const Pair& pair) {
  const Wide a = Wide::of(ops, pair.a) * number_for(target, pair.factor);
  ops.add_in_place(target, (a / Wide::of(ops, pair.b)).x);
}

Tensor sqrt(const Ops& ops, const Tensor& x) {
  return ops.unary(UnaryOp::sqrt, x);
}

Tensor div(const Ops& ops, const Tensor& x, double divisor) {
  return (Wide::of(ops, x) / number_for(x, divisor)).rounded(x.dtype());
}

Tensor add(const Ops& ops, const Tensor& x, double number) {
  return (Wide::of(ops, x) + number_for(x, number)).rounded(x.dtype());
}

Tensor neg(const Ops& ops, const Tensor& x) {
  return ops.unary(UnaryOp::neg, x);
}

Tensor zeros_like(const Tensor& x) {
  return Tensor::full(x.sizes(), 0.0, x.dtype());
}

}  // namespace zeroproof::optim
