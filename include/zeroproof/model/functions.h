#pragma once

#include <vector>

#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;

// Differentiable operations, named as in PyTorch; rule N5 says which nodes they make. Their
// backward is made of the same operations, so that create_graph differentiates it again, and they
// pass through autocast and function transforms. Dimensions count from 0. All throw AutogradError
// for shapes that do not fit.

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
Tensor exp(Autograd& ag, const Tensor& x);
Tensor log(Autograd& ag, const Tensor& x);
Tensor tanh(Autograd& ag, const Tensor& x);
Tensor relu(Autograd& ag, const Tensor& x);
Tensor sin(Autograd& ag, const Tensor& x);
Tensor cos(Autograd& ag, const Tensor& x);
Tensor clone(Autograd& ag, const Tensor& x);
// x itself when it has the dtype.
Tensor to(Autograd& ag, const Tensor& x, DType dtype);
// x.mul_(factor): x gets a new grad_fn (rule H2).
void mul_in_place(Autograd& ag, Tensor& x, double factor);

enum class KeepDim : bool { no, yes };

Tensor sum(Autograd& ag, const Tensor& x);
// Over the dimensions, in ascending order.
Tensor sum(Autograd& ag, const Tensor& x, const std::vector<std::int64_t>& dims, KeepDim keep);
Tensor mean(Autograd& ag, const Tensor& x);
Tensor mean(Autograd& ag, const Tensor& x, const std::vector<std::int64_t>& dims, KeepDim keep);
// Sums broadcast dimensions away.
Tensor sum_to(Autograd& ag, const Tensor& x, const Shape& sizes);
Tensor expand(Autograd& ag, const Tensor& x, const Shape& sizes);

Tensor mm(Autograd& ag, const Tensor& a, const Tensor& b);
Tensor addmm(Autograd& ag, const Tensor& bias, const Tensor& a, const Tensor& b);
Tensor bmm(Autograd& ag, const Tensor& a, const Tensor& b);
Tensor matmul(Autograd& ag, const Tensor& a, const Tensor& b);
Tensor t(Autograd& ag, const Tensor& x);
Tensor transpose(Autograd& ag, const Tensor& x, std::int64_t dim, std::int64_t other_dim);
// The dimension `from` goes to the place `to`, the others keep their order.
Tensor movedim(Autograd& ag, const Tensor& x, std::int64_t from, std::int64_t to);
// Of a contiguous tensor.
Tensor view(Autograd& ag, const Tensor& x, const Shape& sizes);
// The same under another node name: PyTorch's for a view whose base is not seen elsewhere.
Tensor unsafe_view(Autograd& ag, const Tensor& x, const Shape& sizes);
// Of any tensor, copied first if need be.
Tensor reshape(Autograd& ag, const Tensor& x, const Shape& sizes);
Tensor unsqueeze(Autograd& ag, const Tensor& x, std::int64_t dim);
Tensor squeeze(Autograd& ag, const Tensor& x, std::int64_t dim);  // which has size 1

struct Range {
  std::int64_t begin = 0;
  std::int64_t length = 0;
};

Tensor narrow(Autograd& ag, const Tensor& x, std::int64_t dim, Range range);
Tensor cat(Autograd& ag, const TensorList& parts, std::int64_t dim = 0);
TensorList chunk(Autograd& ag, const Tensor& x, std::int64_t chunks, std::int64_t dim);
// The slices along `dim`, all outputs of one node.
TensorList unbind(Autograd& ag, const Tensor& x, std::int64_t dim);
Tensor stack(Autograd& ag, const TensorList& slices, std::int64_t dim);

// In training: elements are zeroed with probability p, the others divided by 1 - p. Draws one
// number an element from the generator of x's device; refused under vmap, as in PyTorch.
Tensor dropout(Autograd& ag, const Tensor& x, double p);

// The sum of squares.
Tensor sq(Autograd& ag, const Tensor& x);

// x times weight transposed, plus bias if it is defined; x of one to three dimensions. What the
// process put in its place, if it did (GlobalState::linear).
Tensor linear(Autograd& ag, const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace zeroproof
