#pragma once

#include <memory>

#include "model/cpu_ops.h"
#include "sim/world/late_memory.h"

namespace zeroproof::sim {

// The model's arithmetic on a late compute stream: it is queued there, so it is done when
// all that was queued before has run. What queued it is the rank, which waits meanwhile.
class LateOps final : public Ops {
 public:
  // `device` has its streams as long as this is used.
  explicit LateOps(std::shared_ptr<LateDevice> device)
      : device_(std::move(device)), elements_(std::make_shared<LateElements>(device_)) {}

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
  const FusedOps& fused() const override;
  Tensor place(const Tensor& x) const override;  // x itself, which is looked at late from now on

 private:
  const CpuOps& caught_up() const;

  std::shared_ptr<LateDevice> device_;
  std::shared_ptr<LateElements> elements_;  // of all that the model computes
  CpuOps arithmetic_;
};

}  // namespace zeroproof::sim
