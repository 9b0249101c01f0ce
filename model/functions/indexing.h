#pragma once

#include <cstdint>
#include <vector>

#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;

// Operations that pick elements. Indices and masks are plain data, the same for a whole batch of
// vmap; they have no gradient and no edge. AutogradError for indices out of range.

// A tensor of integers.
struct Indices {
  std::vector<std::int64_t> values;  // row-major
  Shape sizes;
};

// Rows of the weight [rows, width]: sizes of the indices, then width.
Tensor embedding(Autograd& ag, const Tensor& weight, const Indices& indices);

// Slices of x along a dimension, in the order of the indices, which may repeat.
Tensor index_select(Autograd& ag, const Tensor& x, std::int64_t dim,
                    const std::vector<std::int64_t>& indices);
// x with the slices of `source` added at the indices.
Tensor index_add(Autograd& ag, const Tensor& x, std::int64_t dim,
                 const std::vector<std::int64_t>& indices, const Tensor& source);

// One element of x along `dim` for every index; the other coordinates are those of the index.
Tensor gather(Autograd& ag, const Tensor& x, std::int64_t dim, const Indices& indices);
// x with the elements of `source` added where gather() with these indices would read.
Tensor scatter_add(Autograd& ag, const Tensor& x, std::int64_t dim, const Indices& indices,
                   const Tensor& source);

// Values and where they were. The first of equal elements comes first.
struct Largest {
  Tensor values;
  Indices indices;
};

// The k largest along a dimension, in descending order; the elements must be known, so not under
// vmap.
Largest topk(Autograd& ag, const Tensor& x, std::int64_t k, std::int64_t dim);
// The largest along a dimension, which goes.
Largest max(Autograd& ag, const Tensor& x, std::int64_t dim);

// True elements; broadcasts against what it is used with.
struct Mask {
  std::vector<bool> values;  // row-major
  Shape sizes;
};

// Above the diagonal of a square matrix: what a position must not attend to.
Mask causal_mask(std::int64_t length);

// `number` where the mask is true.
Tensor masked_fill(Autograd& ag, const Tensor& x, const Mask& mask, double number);
// a where the mask is true, b elsewhere.
Tensor where(Autograd& ag, const Mask& mask, const Tensor& a, const Tensor& b);

}  // namespace zeroproof
