#pragma once

#include "zeroproof/model/tensor.h"

namespace zeroproof {

// As torch.allclose with its default tolerances.
bool is_close(const Tensor& a, const Tensor& b);

}  // namespace zeroproof
