#pragma once

#include <cstddef>

#include "model/op.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"

// What the rules of many operations share. For model/functions/*.cpp only.
namespace zeroproof::rules {

template <UnaryOp op>
Tensor unary(const Ops& ops, std::span<const Tensor> inputs, const OpArgs&) {
  return ops.unary(op, inputs[0]);
}

template <BinaryOp op>
Tensor binary(const Ops& ops, std::span<const Tensor> inputs, const OpArgs&) {
  return ops.binary(op, inputs[0], inputs[1]);
}

inline void save_input(OpNode& node, const TensorList& inputs) {
  node.save(inputs[0]);
}

inline void save_both(OpNode& node, const TensorList& inputs) {
  node.save(inputs[0]);
  node.save(inputs[1]);
}

// The operation treats every element alike: batched or not is the same.
template <const Op& op>
TensorList batch_elementwise(Autograd& ag, const BatchedInputs& in, const OpArgs& args) {
  return apply(ag, op, in.tensors, args);
}

// Linear in its only input.
template <const Op& op>
TensorList jvp_linear(Autograd& ag, const TensorList&, const TensorList& tangents,
                      const TensorList&, const OpArgs& args) {
  return apply(ag, op, {tangents[0]}, args);
}

// Inputs that broadcast against each other, with dimensions of size 1 after the batch so that
// their own dimensions meet.
TensorList padded_to_one_rank(Autograd& ag, const BatchedInputs& in);

template <const Op& op>
TensorList batch_pointwise(Autograd& ag, const BatchedInputs& in, const OpArgs& args) {
  return apply(ag, op, padded_to_one_rank(ag, in), args);
}

// Input i with the batch as its first dimension, repeated if it has none.
Tensor with_batch(Autograd& ag, const BatchedInputs& in, std::size_t i);

// `sizes` after the batch dimension.
Shape batched_sizes(const BatchedInputs& in, const Shape& sizes);

// The inputs of one element of the batch.
TensorList batch_element(Autograd& ag, const BatchedInputs& in, std::int64_t index);

// The operation for one element of the batch after the other, the results stacked: for operations
// that no other operation expresses for a whole batch.
template <const Op& op>
TensorList batch_by_element(Autograd& ag, const BatchedInputs& in, const OpArgs& args) {
  std::vector<TensorList> outputs;
  for (std::int64_t i = 0; i < in.batch_size; ++i) {
    const TensorList results = apply(ag, op, batch_element(ag, in, i), args);
    outputs.resize(results.size());
    for (std::size_t k = 0; k < results.size(); ++k) outputs[k].push_back(results[k]);
  }
  TensorList stacked;
  for (const TensorList& slices : outputs) stacked.push_back(stack(ag, slices, 0));
  return stacked;
}

// The sum of two tangents of which one or both may be undefined.
Tensor add_tangents(Autograd& ag, const Tensor& a, const Tensor& b);

// `dim` as an index into x's sizes; AutogradError when x has no such dimension.
std::size_t dim_of(const Tensor& x, std::int64_t dim);

// The sizes of x with 1 for one dimension.
Shape kept_sizes(const Tensor& x, std::size_t dim);

// A tangent, defined or not, times a slope.
Tensor times(Autograd& ag, const Tensor& tangent, const Tensor& slope);

}  // namespace zeroproof::rules
