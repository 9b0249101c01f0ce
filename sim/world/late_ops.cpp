#include "sim/world/late_ops.h"

#include <utility>

#include "sim/world/sim_stream.h"

namespace zeroproof::sim {
namespace {

// While it lives, the host's elements of a tensor are what there is.
class OnHost {
 public:
  explicit OnHost(const Tensor& target)
      : storage_(target.impl().storage), device_(std::exchange(storage_->device, nullptr)) {}
  ~OnHost() { storage_->device = std::move(device_); }
  OnHost(const OnHost&) = delete;
  OnHost& operator=(const OnHost&) = delete;

 private:
  std::shared_ptr<Storage> storage_;
  std::shared_ptr<DeviceElements> device_;
};

}  // namespace

const CpuOps& LateOps::caught_up() const {
  device_->streams->catch_up();
  return arithmetic_;
}

Tensor LateOps::place(const Tensor& x) const {
  if (x.impl().storage && !x.impl().storage->device) x.impl().storage->device = elements_;
  return x;
}

Tensor LateOps::unary(UnaryOp op, const Tensor& x) const {
  return place(caught_up().unary(op, x));
}
Tensor LateOps::binary(BinaryOp op, const Tensor& a, const Tensor& b) const {
  return place(caught_up().binary(op, a, b));
}
Tensor LateOps::mm(const Tensor& a, const Tensor& b) const {
  return place(caught_up().mm(a, b));
}
Tensor LateOps::addmm(const Tensor& bias, const Tensor& a, const Tensor& b) const {
  return place(caught_up().addmm(bias, a, b));
}
Tensor LateOps::bmm(const Tensor& a, const Tensor& b) const {
  return place(caught_up().bmm(a, b));
}
Tensor LateOps::sum(const Tensor& x) const {
  return place(caught_up().sum(x));
}
Tensor LateOps::sum_to(const Tensor& x, const Shape& sizes) const {
  return place(caught_up().sum_to(x, sizes));
}
Tensor LateOps::max_to(const Tensor& x, const Shape& sizes) const {
  return place(caught_up().max_to(x, sizes));
}
Tensor LateOps::cast(const Tensor& x, DType dtype) const {
  return place(caught_up().cast(x, dtype));
}
void LateOps::add_in_place(const Tensor& target, const Tensor& x) const {
  const CpuOps& ops = caught_up();
  const OnHost written(target);
  ops.add_in_place(target, x);
}
void LateOps::copy_in_place(const Tensor& target, const Tensor& x) const {
  const CpuOps& ops = caught_up();
  const OnHost written(target);
  ops.copy_in_place(target, x);
}
// Asked for before each fused operation.
const FusedOps& LateOps::fused() const {
  return caught_up().fused();
}

}  // namespace zeroproof::sim
