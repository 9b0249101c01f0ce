#pragma once

#include "zeroproof/internal/model/fused_ops.h"

namespace zeroproof {

// The reference: plain loops in double, sums from left to right, one rounding per element of a
// result. Overwrites no input. Stateless.
class CpuFusedOps final : public FusedOps {
 public:
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
};

}  // namespace zeroproof
