#include "model/functions/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "zeroproof/model/autograd_error.h"

namespace zeroproof::rules {

TensorList padded_to_one_rank(Autograd& ag, const BatchedInputs& in) {
  const auto own_rank = [&](std::size_t i) {
    return in.tensors[i].sizes().size() - (in.is_batched[i] ? 1 : 0);
  };
  std::size_t rank = 0;
  for (std::size_t i = 0; i < in.tensors.size(); ++i) rank = std::max(rank, own_rank(i));
  TensorList padded = in.tensors;
  for (std::size_t i = 0; i < padded.size(); ++i) {
    if (!in.is_batched[i]) continue;
    for (std::size_t missing = rank - own_rank(i); missing > 0; --missing)
      padded[i] = unsqueeze(ag, padded[i], 1);
  }
  return padded;
}

Tensor with_batch(Autograd& ag, const BatchedInputs& in, std::size_t i) {
  const Tensor& tensor = in.tensors[i];
  return in.is_batched[i] ? tensor : expand(ag, tensor, batched_sizes(in, tensor.sizes()));
}

Shape batched_sizes(const BatchedInputs& in, const Shape& sizes) {
  Shape batched = {in.batch_size};
  batched.insert(batched.end(), sizes.begin(), sizes.end());
  return batched;
}

Tensor add_tangents(Autograd& ag, const Tensor& a, const Tensor& b) {
  if (!a.is_defined()) return b;
  return b.is_defined() ? add(ag, a, b) : a;
}

TensorList batch_element(Autograd& ag, const BatchedInputs& in, std::int64_t index) {
  TensorList inputs = in.tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (in.is_batched[i]) inputs[i] = squeeze(ag, narrow(ag, inputs[i], 0, {index, 1}), 0);
  return inputs;
}

std::size_t dim_of(const Tensor& x, std::int64_t dim) {
  const auto rank = static_cast<std::int64_t>(x.sizes().size());
  if (dim >= 0 && dim < rank) return static_cast<std::size_t>(dim);
  throw AutogradError(fmt::format(
      "Dimension out of range (expected to be in range of [0, {}], but got {})", rank - 1, dim));
}

Shape kept_sizes(const Tensor& x, std::size_t dim) {
  Shape sizes = x.sizes();
  sizes[dim] = 1;
  return sizes;
}

Tensor times(Autograd& ag, const Tensor& tangent, const Tensor& slope) {
  return tangent.is_defined() ? mul(ag, tangent, slope) : tangent;
}

}  // namespace zeroproof::rules
