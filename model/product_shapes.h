#pragma once

#include "zeroproof/model/tensor.h"

namespace zeroproof {

// AutogradError unless both have `dims` dimensions, 2 or 3 with the batch first, and a's columns
// are b's rows.
void check_factors(const Tensor& a, const Tensor& b, std::size_t dims);

}  // namespace zeroproof
