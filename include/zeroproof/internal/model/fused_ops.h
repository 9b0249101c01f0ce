#pragma once

#include <cstdint>

#include "zeroproof/model/tensor.h"

namespace zeroproof {

// What statistics of a narrower type are kept in.
constexpr DType statistics_dtype(DType dtype) {
  return promote(dtype, DType::float32);
}

// Of rows of x, all dimensions but the last.
struct RmsNormOutputs {
  Tensor sum;          // x + residual, rounded; x itself where there is no residual
  Tensor y;            // sum * inverse_rms * weight
  Tensor inverse_rms;  // one a row, in the statistics' dtype: 1 / sqrt(mean(sum^2) + eps)
};
struct RmsNormSaved {
  Tensor sum;
  Tensor weight;
  Tensor inverse_rms;
};
struct RmsNormGrads {
  Tensor x;  // and of the residual
  Tensor weight;
};

// Every head is 64 wide; the positions of [batch, length, ...] count from 0 along the length.
inline constexpr std::int64_t kHeadWidth = 64;
inline constexpr double kRotaryTheta = 10000.0;

struct AttentionOutputs {
  Tensor out;          // [batch, length, heads * 64]
  Tensor rotated;      // [batch, length, 3 * heads * 64]: q and k rotated and rounded, v
  Tensor log_sum_exp;  // [batch, heads, length], statistics: of a query's scaled scores
};

struct CrossEntropyOutputs {
  Tensor loss;         // a scalar, statistics: the mean over the rows
  Tensor grad_logits;  // the gradient of that mean, in the logits' dtype
};

// The arithmetic of a transformer that a device does in one kernel each, without any graph: inputs
// are read, contiguous unless a line says otherwise, and results are new contiguous tensors of the
// inputs' dtype, each element rounded once. Sums and statistics are at least float32 and come in
// an order that never varies. AutogradError for sizes, dtypes or numbers of heads that do not fit.
class FusedOps {
 public:
  virtual ~FusedOps() = default;

  // x [..., width], the residual of the same sizes or undefined, weight [width].
  virtual RmsNormOutputs add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight,
                                      double eps) const = 0;
  // grad_sum is what reaches the sum by other ways, or undefined.
  virtual RmsNormGrads add_rms_norm_backward(const Tensor& grad_y, const Tensor& grad_sum,
                                             const RmsNormSaved& saved) const = 0;

  // The tanh form.
  virtual Tensor gelu(const Tensor& x) const = 0;
  virtual Tensor gelu_backward(const Tensor& grad, const Tensor& x) const = 0;

  // qkv [batch, length, 3 * heads * 64]: the rows Q, K and V of a position in a row, head
  // h at 64h..64h+63 of each. q and k are rotated in pairs (i, i + 32) of a head by the angle
  // position * theta^(-i / 32). Causal, scores scaled by 1 / 8. `rotated` may take over the memory
  // of qkv, whose version then goes up: it must not be read after this.
  virtual AttentionOutputs causal_attention(const Tensor& qkv, std::int64_t heads) const = 0;
  // The gradient of qkv, rotated back. `saved.out` is rounded: what the forward returned.
  virtual Tensor causal_attention_backward(const Tensor& grad_out, const AttentionOutputs& saved,
                                           std::int64_t heads) const = 0;

  // logits [rows, vocabulary]; targets [rows] hold class numbers as float32. `grad_logits` may
  // take over the memory of the logits, whose version then goes up. A target that is no
  // class: AutogradError, or where only the device sees it a loss that is NaN.
  virtual CrossEntropyOutputs cross_entropy(const Tensor& logits, const Tensor& targets) const = 0;
  // grad_logits times the one element of grad_loss; grad_logits itself where that is known to be
  // one. Never overwrites: a retained graph comes here again.
  virtual Tensor cross_entropy_backward(const Tensor& grad_loss,
                                        const Tensor& grad_logits) const = 0;

  // Rows of the table [rows, width]; ids hold row numbers as float32. A number that is no row is
  // an AutogradError, or a row of NaN where only the device sees it.
  virtual Tensor embedding(const Tensor& table, const Tensor& ids) const = 0;
  // The gradient of a table of `rows`; zeros in rows that no id names.
  virtual Tensor embedding_backward(const Tensor& grad, const Tensor& ids,
                                    std::int64_t rows) const = 0;
};

}  // namespace zeroproof
