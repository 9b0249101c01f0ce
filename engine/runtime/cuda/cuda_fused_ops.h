#pragma once

#include <functional>
#include <memory>

#include "engine/runtime/cuda/gpu.h"
#include "model/cpu_fused_ops.h"
#include "zeroproof/engine/runtime/cuda/cuda_world.h"

namespace zeroproof::cuda {

class CudaProducts;
class CudnnAttention;
struct AttentionShape;

// bfloat16 in one kernel each (fused/), with statistics in float32. Other dtypes, and shapes that a
// kernel does not take, are computed by the reference on the host: right, and slow.
class CudaFusedOps final : public FusedOps {
 public:
  // `products`, which must outlive it, may have put off what a GELU reads.
  CudaFusedOps(std::shared_ptr<Gpu> gpu, CudaArithmetic arithmetic, CudaProducts& products);
  ~CudaFusedOps() override;
  CudaFusedOps(const CudaFusedOps&) = delete;
  CudaFusedOps& operator=(const CudaFusedOps&) = delete;

  RmsNormOutputs add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight,
                              double eps) const override;
  RmsNormGrads add_rms_norm_backward(const Tensor& grad_y, const Tensor& grad_sum,
                                     const RmsNormSaved& saved) const override;
  Tensor gelu(const Tensor& x) const override;
  Tensor gelu_backward(const Tensor& grad, const Tensor& x) const override;
  AttentionOutputs causal_attention(const Tensor& qkv, std::int64_t heads) const override;
  Tensor causal_attention_backward(const Tensor& grad_out, const AttentionOutputs& saved,
                                   std::int64_t heads) const override;
  CrossEntropyOutputs cross_entropy(const Tensor& logits, const Tensor& targets) const override;
  Tensor cross_entropy_backward(const Tensor& grad_loss, const Tensor& grad_logits) const override;
  Tensor embedding(const Tensor& table, const Tensor& ids) const override;
  Tensor embedding_backward(const Tensor& grad, const Tensor& ids,
                            std::int64_t rows) const override;

 private:
  Tensor make(const Tensor& like, Shape sizes, DType dtype) const;
  Tensor numbers(const Tensor& ids) const;  // as int32, in the memory of a float32 tensor
  const float* rotary_angles(std::int64_t positions) const;
  void rotate(std::uint16_t* qkv, const AttentionShape& shape, bool is_inverse) const;
  void attend(const AttentionShape& shape,
              const std::function<void(CudnnAttention& cudnn, void* workspace)>& library,
              const std::function<void()>& own) const;

  std::shared_ptr<Gpu> gpu_;
  CudaArithmetic arithmetic_;
  CudaProducts& products_;
  CpuFusedOps cpu_;
  mutable Tensor angles_;  // of the longest sequence so far
  mutable std::unique_ptr<CudnnAttention> cudnn_;
};

}  // namespace zeroproof::cuda
