#pragma once

#include "zeroproof/internal/model/ops.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

// A formula over whole tensors in double, without a graph: what a fused kernel computes before it
// rounds once. `ops` must outlive it.
struct Wide {
  const Ops& ops;
  Tensor x;

  static Wide of(const Ops& ops, const Tensor& x) {
    return {ops, x.dtype() == DType::float64 ? x : ops.cast(x, DType::float64)};
  }
  Tensor rounded(DType dtype) const { return dtype == DType::float64 ? x : ops.cast(x, dtype); }
  Wide unary(UnaryOp op) const { return {ops, ops.unary(op, x)}; }
  Wide binary(BinaryOp op, const Tensor& y) const { return {ops, ops.binary(op, x, y)}; }
  Wide number(BinaryOp op, double y) const { return binary(op, Tensor::number(y, DType::float64)); }

  friend Wide operator+(const Wide& a, const Wide& b) { return a.binary(BinaryOp::add, b.x); }
  friend Wide operator-(const Wide& a, const Wide& b) { return a.binary(BinaryOp::sub, b.x); }
  friend Wide operator*(const Wide& a, const Wide& b) { return a.binary(BinaryOp::mul, b.x); }
  friend Wide operator/(const Wide& a, const Wide& b) { return a.binary(BinaryOp::div, b.x); }
  friend Wide operator+(const Wide& a, double b) { return a.number(BinaryOp::add, b); }
  friend Wide operator-(const Wide& a, double b) { return a.number(BinaryOp::sub, b); }
  friend Wide operator*(const Wide& a, double b) { return a.number(BinaryOp::mul, b); }
  friend Wide operator/(const Wide& a, double b) { return a.number(BinaryOp::div, b); }
  friend Wide exp(const Wide& a) { return a.unary(UnaryOp::exp); }
  friend Wide log(const Wide& a) { return a.unary(UnaryOp::log); }
  friend Wide erf(const Wide& a) { return a.unary(UnaryOp::erf); }
  friend Wide tanh(const Wide& a) { return a.unary(UnaryOp::tanh); }
  friend Wide inverse_root(const Wide& a) {
    const Tensor one = Tensor::number(1.0, DType::float64);
    return {a.ops, a.ops.binary(BinaryOp::div, one, a.ops.unary(UnaryOp::sqrt, a.x))};
  }
  friend Wide sum_to(const Wide& a, const Shape& sizes) {
    return {a.ops, a.ops.sum_to(a.x, sizes)};
  }
  friend Wide max_to(const Wide& a, const Shape& sizes) {
    return {a.ops, a.ops.max_to(a.x, sizes)};
  }
};

}  // namespace zeroproof
