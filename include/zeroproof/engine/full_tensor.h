#pragma once

#include <string>
#include <vector>

#include "zeroproof/model/tensor.h"

namespace zeroproof {

// One named tensor of the model or of the optimizer, whole, in row-major order.
struct FullTensor {
  std::string name;
  Shape sizes;
  std::vector<double> values;
};

}  // namespace zeroproof
