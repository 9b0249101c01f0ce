#include "engine/runtime/cuda/cuda_ops.h"

#include <utility>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/cuda/device_buffer.h"
#include "engine/runtime/cuda/kernels/launches.h"
#include "model/check.h"
#include "model/product_shapes.h"

namespace zeroproof::cuda {
namespace {

Device device_of(const Tensor& a, const Tensor& b) {
  return a.device().is_cpu() ? b.device() : a.device();
}

// With sizes and strides of their own, also where the elements are contiguous.
Strided batched(const Tensor& x) {
  Strided out = strided(x.impl());
  const std::size_t added = 3 - x.sizes().size();
  out.dims = 3;
  for (std::size_t d = 0; d < 3; ++d) {
    out.sizes[d] = d < added ? 1 : x.sizes()[d - added];
    out.strides[d] = d < added ? 0 : x.strides()[d - added];
  }
  return out;
}

// The dimensions of x that `sizes` keeps, or those that it folds, as a view of x. Sizes count from
// the last dimension.
Strided dimensions(const Tensor& x, const Shape& sizes, bool is_kept) {
  Strided out = strided(x.impl());
  ZP_CHECK(x.sizes().size() <= kDimsMax, "a kernel on a tensor of more than 8 dimensions");
  const std::size_t added = x.sizes().size() - sizes.size();
  out.elements = 1;
  out.dims = 0;
  for (std::size_t d = 0; d < x.sizes().size(); ++d) {
    const bool keeps = d >= added && sizes[d - added] == x.sizes()[d];
    if (keeps != is_kept) continue;
    const auto at = static_cast<std::size_t>(out.dims++);
    out.sizes[at] = x.sizes()[d];
    out.strides[at] = x.strides()[d];
    out.elements *= x.sizes()[d];
  }
  if (out.dims > 0) return out;
  out.dims = 1;
  out.sizes[0] = 1;
  out.strides[0] = 0;
  return out;
}

}  // namespace

CudaOps::CudaOps(std::shared_ptr<Gpu> gpu, CudaArithmetic arithmetic)
    : gpu_(std::move(gpu)), products_(gpu_, arithmetic), fused_(gpu_, arithmetic, products_) {}
CudaOps::~CudaOps() = default;

Tensor CudaOps::place(const Tensor& x) const {
  gpu_->make_current();
  return uploaded(gpu_, x);
}

Tensor CudaOps::resident(const Tensor& x) const {
  gpu_->make_current();
  return is_strided(x.impl()) ? x : uploaded(gpu_, x);
}

// What a kernel that writes `target` may read: a copy of what shares its memory.
Tensor CudaOps::source_for(const Tensor& target, const Tensor& x) const {
  const Tensor apart = x.shares_storage_with(target) ? cast(x, x.dtype()) : resident(x);
  return broadcast_to(apart, target.sizes());
}

Tensor CudaOps::make(Shape sizes, DType dtype, const Device& device) const {
  Tensor out = make_tensor(gpu_, std::move(sizes), dtype);
  out.impl().device = device;
  return out;
}

Tensor CudaOps::unary(UnaryOp op, const Tensor& given) const {
  const Tensor x = resident(given);
  Tensor out = make(x.sizes(), x.dtype(), x.device());
  ZP_CUDA(launch_unary(gpu_->compute(), op, strided(out.impl()), strided(x.impl())));
  return out;
}

Tensor CudaOps::binary(BinaryOp op, const Tensor& left, const Tensor& right) const {
  Shape sizes = broadcast(left.sizes(), right.sizes());
  const Tensor a = broadcast_to(resident(left), sizes);
  const Tensor b = broadcast_to(resident(right), sizes);
  Tensor out = make(sizes, promote(a.dtype(), b.dtype()), device_of(a, b));
  ZP_CUDA(launch_binary(gpu_->compute(), op, strided(out.impl()), strided(a.impl()),
                        strided(b.impl())));
  return out;
}

Tensor CudaOps::product(const Tensor& left, const Tensor& right, const Tensor& bias) const {
  const Tensor a = resident(left);
  const Tensor b = resident(right);
  Shape sizes = a.sizes();
  sizes.back() = b.sizes().back();
  Tensor out = make(sizes, promote(a.dtype(), b.dtype()), device_of(a, b));
  if (!bias.is_defined() && products_.multiply(a, b, out)) return out;
  Product product{.out = batched(out), .a = batched(a), .b = batched(b), .bias = {}};
  Tensor offsets;
  if (bias.is_defined()) {
    offsets = broadcast_to(resident(bias), sizes);
    product.bias = strided(offsets.impl());
    product.has_bias = true;
  }
  ZP_CUDA(launch_product(gpu_->compute(), product));
  return out;
}

Tensor CudaOps::mm(const Tensor& a, const Tensor& b) const {
  check_factors(a, b, 2);
  return product(a, b, {});
}

Tensor CudaOps::addmm(const Tensor& bias, const Tensor& a, const Tensor& b) const {
  check_factors(a, b, 2);
  return product(a, b, bias);
}

Tensor CudaOps::bmm(const Tensor& a, const Tensor& b) const {
  check_factors(a, b, 3);
  return product(a, b, {});
}

Tensor CudaOps::sum(const Tensor& x) const {
  return sum_to(x, {});
}

Tensor CudaOps::sum_to(const Tensor& given, const Shape& sizes) const {
  const Tensor x = resident(given);
  Tensor out = make(sizes, x.dtype(), x.device());
  ZP_CUDA(launch_fold(gpu_->compute(), Fold::sum, strided(out.impl()), dimensions(x, sizes, true),
                      dimensions(x, sizes, false)));
  return out;
}

Tensor CudaOps::max_to(const Tensor& given, const Shape& sizes) const {
  const Tensor x = resident(given);
  Tensor out = make(sizes, x.dtype(), x.device());
  ZP_CUDA(launch_fold(gpu_->compute(), Fold::max, strided(out.impl()), dimensions(x, sizes, true),
                      dimensions(x, sizes, false)));
  return out;
}

Tensor CudaOps::cast(const Tensor& given, DType dtype) const {
  const Tensor x = resident(given);
  Tensor out = make(x.sizes(), dtype, x.device());
  ZP_CUDA(launch_copy(gpu_->compute(), strided(out.impl()), strided(x.impl()), 1.0));
  return out;
}

void CudaOps::add_in_place(const Tensor& target, const Tensor& given) const {
  if (buffer_of(target.impl()) == nullptr) return cpu_.add_in_place(target, given);
  const Tensor x = source_for(target, given);
  ZP_CUDA(launch_add(gpu_->compute(), strided(target.impl()), strided(x.impl()), 1.0));
  ++target.impl().storage->version;
}

void CudaOps::copy_in_place(const Tensor& target, const Tensor& given) const {
  if (buffer_of(target.impl()) == nullptr) return cpu_.copy_in_place(target, given);
  const Tensor x = source_for(target, given);
  ZP_CUDA(launch_copy(gpu_->compute(), strided(target.impl()), strided(x.impl()), 1.0));
  ++target.impl().storage->version;
}

}  // namespace zeroproof::cuda
