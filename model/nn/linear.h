#pragma once

#include "model/functions.h"
#include "model/tensor.h"

namespace zeroproof::nn {

// weight [out, in]; without a bias when it is undefined.
struct Linear {
  Tensor weight;
  Tensor bias;

  Tensor operator()(Autograd& ag, const Tensor& x) const { return linear(ag, x, weight, bias); }
};

}  // namespace zeroproof::nn
