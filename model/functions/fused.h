#pragma once

#include <cstdint>

#include "zeroproof/model/tensor.h"

namespace zeroproof {
class Autograd;
}

// The operations of a transformer that are one kernel each on a device
// (zeroproof/internal/model/fused_ops.h says sizes and numbers), as nodes of the graph.
// Differentiable once: the gradient of a gradient is an AutogradError, as is vmap or a forward
// derivative.
namespace zeroproof::fused {

struct Normed {
  Tensor sum;  // x + residual: where the residual stream goes on
  Tensor y;
};

// The residual may be undefined: the sum is x then.
Normed add_rms_norm(Autograd& ag, const Tensor& x, const Tensor& residual, const Tensor& weight,
                    double eps);

Tensor gelu(Autograd& ag, const Tensor& x);

// qkv [batch, length, 3 * heads * 64] must not be read afterwards.
Tensor causal_attention(Autograd& ag, const Tensor& qkv, std::int64_t heads);

// Of logits [rows, classes], which must not be read afterwards, and targets [rows] that hold
// class numbers: the mean, a scalar of float32 or wider.
Tensor cross_entropy(Autograd& ag, const Tensor& logits, const Tensor& targets);

// Rows of the table by the numbers that ids hold.
Tensor embedding(Autograd& ag, const Tensor& table, const Tensor& ids);

}  // namespace zeroproof::fused
