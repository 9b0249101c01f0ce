#include "model/functions/attention.h"

#include <cmath>
#include <limits>

#include "model/functions/activations.h"
#include "model/functions/indexing.h"
#include "model/functions/scalars.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

// Batch and heads as one dimension.
Tensor flattened(Autograd& ag, const Tensor& x) {
  const Shape& sizes = x.sizes();
  if (sizes.size() == 3) return x;
  if (sizes.size() != 4)
    throw AutogradError("scaled_dot_product_attention: inputs have three or four dimensions here");
  return reshape(ag, x, {sizes[0] * sizes[1], sizes[2], sizes[3]});
}

}  // namespace

Tensor scaled_dot_product_attention(Autograd& ag, const AttentionInputs& in, Causal causal) {
  const double root = std::pow(static_cast<double>(in.query.sizes().back()), -0.25);
  const Tensor query = mul_scalar(ag, flattened(ag, in.query), root);
  const Tensor key = mul_scalar(ag, transpose(ag, flattened(ag, in.key), 1, 2), root);
  Tensor scores = bmm(ag, query, key);
  if (causal == Causal::yes) {
    const Shape& sizes = scores.sizes();
    if (sizes[1] != sizes[2])
      throw AutogradError("scaled_dot_product_attention: causal needs keys for every query");
    scores =
        masked_fill(ag, scores, causal_mask(sizes[1]), -std::numeric_limits<double>::infinity());
  }
  Tensor out = bmm(ag, softmax(ag, scores, 2), flattened(ag, in.value));
  if (in.query.sizes().size() == 3) return out;
  Shape sizes = in.query.sizes();
  sizes.back() = in.value.sizes().back();
  return view(ag, out, sizes);
}

}  // namespace zeroproof
