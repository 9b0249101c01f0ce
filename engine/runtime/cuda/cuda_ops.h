#pragma once

#include <memory>

#include "engine/runtime/cuda/cuda_fused_ops.h"
#include "engine/runtime/cuda/cuda_products.h"
#include "engine/runtime/cuda/device_buffer.h"
#include "engine/runtime/cuda/gpu.h"
#include "engine/runtime/cuda/kernels/strided.h"
#include "model/cpu_ops.h"

namespace zeroproof::cuda {

// The model's arithmetic on one GPU's compute stream. It has the bits of CpuOps but for
// mathematical functions, which may differ in the last bit of a double, and for products of more
// than kReferenceProducts terms, which cuBLASLt sums in float32. What the host keeps is uploaded to
// be read; a target that the host keeps is written there.
class CudaOps final : public Ops {
 public:
  static constexpr std::int64_t kReferenceProducts = CudaProducts::kReferenceProducts;

  CudaOps(std::shared_ptr<Gpu> gpu, CudaArithmetic arithmetic);
  ~CudaOps() override;
  CudaOps(const CudaOps&) = delete;
  CudaOps& operator=(const CudaOps&) = delete;

  Tensor unary(UnaryOp op, const Tensor& given) const override;
  Tensor binary(BinaryOp op, const Tensor& left, const Tensor& right) const override;
  Tensor mm(const Tensor& a, const Tensor& b) const override;
  Tensor addmm(const Tensor& bias, const Tensor& a, const Tensor& b) const override;
  Tensor bmm(const Tensor& a, const Tensor& b) const override;
  Tensor sum(const Tensor& x) const override;
  Tensor sum_to(const Tensor& given, const Shape& sizes) const override;
  Tensor max_to(const Tensor& given, const Shape& sizes) const override;
  Tensor cast(const Tensor& given, DType dtype) const override;
  void add_in_place(const Tensor& target, const Tensor& given) const override;
  void copy_in_place(const Tensor& target, const Tensor& given) const override;
  const FusedOps& fused() const override { return fused_; }
  Tensor place(const Tensor& x) const override;

 private:
  Tensor resident(const Tensor& x) const;  // x itself, where kernels can read it
  Tensor source_for(const Tensor& target, const Tensor& x) const;
  Tensor make(Shape sizes, DType dtype, const Device& device) const;
  Tensor product(const Tensor& left, const Tensor& right, const Tensor& bias) const;

  std::shared_ptr<Gpu> gpu_;
  mutable CudaProducts products_;
  CudaFusedOps fused_;
  CpuOps cpu_;
};

}  // namespace zeroproof::cuda
