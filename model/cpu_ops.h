#pragma once

#include "model/cpu_fused_ops.h"
#include "zeroproof/internal/model/ops.h"

namespace zeroproof {

// The reference: plain loops in row-major order, sums from left to right in double, one rounding
// per element. Stateless.
class CpuOps final : public Ops {
 public:
  Tensor unary(UnaryOp op, const Tensor& x) const override;
  Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b) const override;
  Tensor mm(const Tensor& a, const Tensor& b) const override;
  Tensor addmm(const Tensor& bias, const Tensor& a, const Tensor& b) const override;
  Tensor bmm(const Tensor& a, const Tensor& b) const override;
  Tensor sum(const Tensor& x) const override;
  Tensor sum_to(const Tensor& x, const Shape& sizes) const override;
  Tensor max_to(const Tensor& x, const Shape& sizes) const override;
  Tensor cast(const Tensor& x, DType dtype) const override;
  void add_in_place(const Tensor& target, const Tensor& x) const override;
  void copy_in_place(const Tensor& target, const Tensor& x) const override;
  const FusedOps& fused() const override { return fused_; }

 private:
  CpuFusedOps fused_;
};

}  // namespace zeroproof
