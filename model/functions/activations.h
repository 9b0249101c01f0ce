#pragma once

#include <cstdint>

#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;

// Activations as torch.nn.functional has them; one rounding an element. Differentiable as all
// functions of zeroproof/model/functions.h.

Tensor sigmoid(Autograd& ag, const Tensor& x);
Tensor silu(Autograd& ag, const Tensor& x);  // x sigmoid(x)

enum class GeluForm : bool { erf, tanh };  // exact, or approximate="tanh"
Tensor gelu(Autograd& ag, const Tensor& x, GeluForm form = GeluForm::erf);

Tensor erf(Autograd& ag, const Tensor& x);
Tensor rsqrt(Autograd& ag, const Tensor& x);

// Along one dimension; AutogradError when x has no such dimension.
Tensor softmax(Autograd& ag, const Tensor& x, std::int64_t dim);
Tensor log_softmax(Autograd& ag, const Tensor& x, std::int64_t dim);

}  // namespace zeroproof
