#pragma once

#include "zeroproof/model/tensor.h"

namespace zeroproof {

// What gradients are divided by before an update: loss scale and clipping.
struct GradientDivisor {
  double number = 1.0;
  // In place of the number where the host does not know it: 1 / it, one float64 of the device.
  Tensor reciprocal = {};

  bool is_one() const { return !reciprocal.is_defined() && number == 1.0; }
};

}  // namespace zeroproof
