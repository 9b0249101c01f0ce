#pragma once

#include <cmath>
#include <vector>

#include "model/functions/attention.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::testing {

// cos or sin of position * 10000^(-i / 32), [length, 1, 32].
inline Tensor angles(std::int64_t length, double (*of)(double)) {
  std::vector<double> values;
  for (std::int64_t position = 0; position < length; ++position)
    for (int i = 0; i < 32; ++i)
      values.push_back(of(static_cast<double>(position) * std::pow(10000.0, -i / 32.0)));
  return Tensor::of(values, {length, 1, 32});
}

// x [batch, length, heads, 64]
inline Tensor rotated(Autograd& ag, const Tensor& x) {
  const Tensor cosine = angles(x.sizes()[1], std::cos);
  const Tensor sine = angles(x.sizes()[1], std::sin);
  const Tensor a = narrow(ag, x, 3, {0, 32});
  const Tensor b = narrow(ag, x, 3, {32, 32});
  return cat(ag,
             {sub(ag, mul(ag, a, cosine), mul(ag, b, sine)),
              add(ag, mul(ag, a, sine), mul(ag, b, cosine))},
             3);
}

// The attention of FusedOps, of functions that each do one thing: qkv [batch, length,
// 3 * heads * 64].
inline Tensor composed_attention(Autograd& ag, const Tensor& qkv, std::int64_t heads) {
  const Shape& all = qkv.sizes();
  TensorList parts;
  for (const Tensor& part : chunk(ag, qkv, 3, 2))
    parts.push_back(reshape(ag, part, {all[0], all[1], heads, 64}));
  const Tensor out = scaled_dot_product_attention(
      ag,
      {transpose(ag, rotated(ag, parts[0]), 1, 2), transpose(ag, rotated(ag, parts[1]), 1, 2),
       transpose(ag, parts[2], 1, 2)},
      Causal::yes);
  return reshape(ag, transpose(ag, out, 1, 2), {all[0], all[1], heads * 64});
}

}  // namespace zeroproof::testing
