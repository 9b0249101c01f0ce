#pragma once

#include "model/dtype.h"

namespace zeroproof::host {

// round_to with the cheap dtypes inline.
struct Rounding {
  DType dtype;

  double operator()(double value) const {
    if (dtype == DType::float64) return value;
    if (dtype == DType::float32) return static_cast<double>(static_cast<float>(value));
    return round_to(dtype, value);
  }

  // A number beside a tensor of this dtype, as upstream's kernels take it.
  double number(double value) const {
    return dtype == DType::float64 ? value : static_cast<double>(static_cast<float>(value));
  }
};

}  // namespace zeroproof::host
