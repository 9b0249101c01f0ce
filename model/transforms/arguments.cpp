#include "model/transforms/arguments.h"

#include <algorithm>
#include <string>
#include <utility>

#include "zeroproof/model/autograd_error.h"

namespace zeroproof::func {
namespace {

std::size_t position(std::int64_t argnum, std::size_t count) {
  const auto signed_count = static_cast<std::int64_t>(count);
  if (argnum >= signed_count || argnum < -signed_count)
    throw AutogradError("Got argnum=" + std::to_string(argnum) + ", but only " +
                        std::to_string(count) + " positional inputs");
  return static_cast<std::size_t>(argnum < 0 ? argnum + signed_count : argnum);
}

}  // namespace

std::vector<std::size_t> positions(const std::optional<Argnums>& argnums, std::size_t count) {
  std::vector<std::size_t> positions;
  if (!argnums) {
    for (std::size_t i = 0; i < count; ++i) positions.push_back(i);
    return positions;
  }
  if (argnums->empty()) throw AutogradError("argnums must be non-empty");
  for (const std::int64_t argnum : *argnums) {
    const std::size_t at = position(argnum, count);
    if (std::find(positions.begin(), positions.end(), at) != positions.end())
      throw AutogradError("argnums elements must be unique");
    positions.push_back(at);
  }
  return positions;
}

TensorList at_positions(const TensorList& tensors, const std::vector<std::size_t>& positions) {
  TensorList chosen;
  for (const std::size_t at : positions) chosen.push_back(tensors[at]);
  return chosen;
}

Tensor zeros_like(const Tensor& tensor) {
  return Tensor::full(tensor.sizes(), 0.0, tensor.dtype()).on(tensor.device());
}

TensorList standard_basis(const TensorList& tensors) {
  std::int64_t total = 0;
  for (const Tensor& tensor : tensors) total += tensor.numel();
  TensorList basis;
  std::int64_t begin = 0;
  for (const Tensor& tensor : tensors) {
    const std::int64_t length = tensor.numel();
    std::vector<double> values(static_cast<std::size_t>(total * length), 0.0);
    for (std::int64_t i = 0; i < length; ++i)
      values[static_cast<std::size_t>((begin + i) * length + i)] = 1.0;
    Shape sizes = tensor.sizes();
    sizes.insert(sizes.begin(), total);
    basis.push_back(Tensor::of(values, std::move(sizes), tensor.dtype()).on(tensor.device()));
    begin += length;
  }
  return basis;
}

}  // namespace zeroproof::func
