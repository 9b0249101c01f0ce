#pragma once

#include <vector>

#include "model/transforms/transforms.h"

// What the transforms do with the arguments of a function. For model/transforms/*.cpp only.
namespace zeroproof::func {

// Positions from 0, each at most once, in the given order; all of them without argnums.
std::vector<std::size_t> positions(const std::optional<Argnums>& argnums, std::size_t count);

TensorList at_positions(const TensorList& tensors, const std::vector<std::size_t>& positions);

Tensor zeros_like(const Tensor& tensor);

// For each tensor one of size N before its own sizes, N the number of elements of all: row i of
// them together is one in element i and zero elsewhere.
TensorList standard_basis(const TensorList& tensors);

}  // namespace zeroproof::func
