#pragma once

#include <cstdint>

#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;

// Over the last dimensions of x, which are those of `normalized`; weight and bias have them too
// and may be undefined. AutogradError for sizes that do not fit.

struct LayerNormArgs {
  Shape normalized;
  double eps = 1e-5;
};

Tensor layer_norm(Autograd& ag, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const LayerNormArgs& args);

// Composed of simple operations as upstream; in float32 for narrower types.
Tensor rms_norm(Autograd& ag, const Tensor& x, const Tensor& weight, const LayerNormArgs& args);

}  // namespace zeroproof
