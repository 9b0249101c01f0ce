#pragma once

#include "model/tensor.h"

namespace zeroproof {

class Autograd;

// Differentiable operations, named as in PyTorch; rule N5 says which nodes they make. Their
// backward is made of the same operations, so that create_graph differentiates it again. All
// throw AutogradError for shapes that do not fit.

Tensor add(Autograd& ag, const Tensor& a, const Tensor& b);
Tensor add(Autograd& ag, const Tensor& a, double b);
Tensor sub(Autograd& ag, const Tensor& a, const Tensor& b);
Tensor mul(Autograd& ag, const Tensor& a, const Tensor& b);
Tensor mul(Autograd& ag, const Tensor& a, double b);
Tensor div(Autograd& ag, const Tensor& a, const Tensor& b);
Tensor div(Autograd& ag, const Tensor& a, double b);
Tensor neg(Autograd& ag, const Tensor& x);
Tensor pow(Autograd& ag, const Tensor& x, double exponent);
Tensor abs(Autograd& ag, const Tensor& x);
Tensor sqrt(Autograd& ag, const Tensor& x);
Tensor tanh(Autograd& ag, const Tensor& x);
Tensor relu(Autograd& ag, const Tensor& x);
Tensor sin(Autograd& ag, const Tensor& x);
Tensor cos(Autograd& ag, const Tensor& x);

Tensor sum(Autograd& ag, const Tensor& x);
// Sums broadcast dimensions away.
Tensor sum_to(Autograd& ag, const Tensor& x, const Shape& sizes);
Tensor expand(Autograd& ag, const Tensor& x, const Shape& sizes);

Tensor mm(Autograd& ag, const Tensor& a, const Tensor& b);
Tensor addmm(Autograd& ag, const Tensor& bias, const Tensor& a, const Tensor& b);
Tensor t(Autograd& ag, const Tensor& x);
// Of a contiguous tensor.
Tensor view(Autograd& ag, const Tensor& x, const Shape& sizes);
Tensor clone(Autograd& ag, const Tensor& x);

// Along the first dimension.
Tensor cat(Autograd& ag, const TensorList& parts);
// The slices along `dim`, all outputs of one node.
TensorList unbind(Autograd& ag, const Tensor& x, std::size_t dim);
Tensor stack(Autograd& ag, const TensorList& slices, std::size_t dim);

// The sum of squares.
Tensor sq(Autograd& ag, const Tensor& x);

// x times weight transposed, plus bias if it is defined; 2-D or 3-D contiguous x.
Tensor linear(Autograd& ag, const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace zeroproof
