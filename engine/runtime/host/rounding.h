#pragma once

#include <cmath>

#include "zeroproof/model/dtype.h"

namespace zeroproof::host {

// round_to with the cheap dtypes inline.
struct Rounding {
  DType dtype;

  double operator()(double value) const {
    if (dtype == DType::float64) return value;
    if (dtype == DType::float32) return static_cast<double>(static_cast<float>(value));
    return round_to(dtype, value);
  }

  double root(double value) const { return (*this)(std::sqrt(value)); }
};

}  // namespace zeroproof::host
