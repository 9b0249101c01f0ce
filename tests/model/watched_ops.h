#pragma once

#include "model/cpu_ops.h"

namespace zeroproof::testing {

// The reference arithmetic; the watcher hears of each call before it happens.
class WatchedOps : public Ops {
 public:
  enum class Kind { sum_of_two, other };

  Tensor unary(UnaryOp op, const Tensor& x) const override {
    return on_call(Kind::other), cpu_.unary(op, x);
  }
  Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b) const override {
    return on_call(op == BinaryOp::add ? Kind::sum_of_two : Kind::other), cpu_.binary(op, a, b);
  }
  Tensor mm(const Tensor& a, const Tensor& b) const override {
    return on_call(Kind::other), cpu_.mm(a, b);
  }
  Tensor addmm(const Tensor& bias, const Tensor& a, const Tensor& b) const override {
    return on_call(Kind::other), cpu_.addmm(bias, a, b);
  }
  Tensor bmm(const Tensor& a, const Tensor& b) const override {
    return on_call(Kind::other), cpu_.bmm(a, b);
  }
  Tensor sum(const Tensor& x) const override { return on_call(Kind::other), cpu_.sum(x); }
  Tensor sum_to(const Tensor& x, const Shape& sizes) const override {
    return on_call(Kind::other), cpu_.sum_to(x, sizes);
  }
  Tensor max_to(const Tensor& x, const Shape& sizes) const override {
    return on_call(Kind::other), cpu_.max_to(x, sizes);
  }
  Tensor cast(const Tensor& x, DType dtype) const override {
    return on_call(Kind::other), cpu_.cast(x, dtype);
  }
  void add_in_place(const Tensor& target, const Tensor& x) const override {
    on_call(Kind::sum_of_two), cpu_.add_in_place(target, x);
  }
  void copy_in_place(const Tensor& target, const Tensor& x) const override {
    on_call(Kind::other), cpu_.copy_in_place(target, x);
  }
  const FusedOps& fused() const override { return on_call(Kind::other), cpu_.fused(); }

 private:
  virtual void on_call(Kind kind) const = 0;

  CpuOps cpu_;
};

}  // namespace zeroproof::testing
