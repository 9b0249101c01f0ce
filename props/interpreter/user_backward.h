#pragma once

#include <functional>
#include <vector>

#include "zeroproof/model/autograd.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof::program {

// Operations in whose backward code of the user runs. `ag` and what is called or written to must
// live until then.

// Of what the user watches.
using SeenGradients = std::vector<std::vector<double>>;

// x, whose backward calls `run`.
Tensor interrupted(Autograd& ag, const Tensor& x, const std::function<void()>& run);
// x, whose gradient is times that: an infinity or no number; one on the other ranks, which have the
// same operations.
Tensor overflowing(Autograd& ag, const Tensor& x, double factor);
// x, for which the user sees the gradient.
Tensor watched(Autograd& ag, const Tensor& x, SeenGradients& seen);

}  // namespace zeroproof::program
