#include "model/optim/clip.h"

#include <algorithm>

#include "model/wide.h"

namespace zeroproof::optim {
namespace {

Tensor norm(const Ops& ops, const Tensor& x) {
  const Wide wide = Wide::of(ops, x);
  const Tensor square = ops.sum((wide * wide).x);
  return ops.cast(ops.unary(UnaryOp::sqrt, square), x.dtype());
}

}  // namespace

Tensor grad_norm(const Ops& ops, const TensorList& parameters) {
  std::vector<double> norms;
  DType dtype = DType::float16;
  for (const Tensor& parameter : parameters) {
    const Tensor grad = parameter.grad();
    if (!grad.is_defined()) continue;
    dtype = norms.empty() ? grad.dtype() : promote(dtype, grad.dtype());
    norms.push_back(norm(ops, grad).item());
  }
  if (norms.empty()) return Tensor::full({}, 0.0, DType::float32);
  const auto count = static_cast<std::int64_t>(norms.size());
  return norm(ops, Tensor::of(norms, {count}, dtype));
}

// The factor is a tensor of the norm's dtype and never above 1; a NaN stays one.
Tensor clip_grad_norm(const Ops& ops, const TensorList& parameters, double max_norm) {
  Tensor total = grad_norm(ops, parameters);
  const double divisor = round_to(total.dtype(), total.item() + 1e-6);
  const double factor = round_to(total.dtype(), max_norm / divisor);
  for (const Tensor& parameter : parameters) {
    const Tensor grad = parameter.grad();
    if (!grad.is_defined()) continue;
    const double of_grad = round_to(grad.dtype(), std::min(factor, 1.0));
    ops.copy_in_place(grad, (Wide::of(ops, grad) * of_grad).x);
  }
  return total;
}

}  // namespace zeroproof::optim
