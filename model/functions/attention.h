#pragma once

#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;

enum class Causal : bool { no, yes };

struct AttentionInputs {
  Tensor query;
  Tensor key;
  Tensor value;
};

// Of [batch, heads, length, width] or [batch, length, width]; the math form of
// scaled_dot_product_attention: both factors of the scores are scaled by the root of the scale.
// AutogradError for other shapes.
Tensor scaled_dot_product_attention(Autograd& ag, const AttentionInputs& in,
                                    Causal causal = Causal::no);

}  // namespace zeroproof
