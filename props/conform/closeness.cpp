#include "props/conform/closeness.h"

#include <cmath>
#include <vector>

namespace zeroproof {

bool is_close(const Tensor& a, const Tensor& b) {
  const std::vector<double> left = a.values();
  const std::vector<double> right = b.values();
  for (std::size_t i = 0; i < left.size(); ++i)
    if (!(std::abs(left[i] - right[i]) <= 1e-8 + 1e-5 * std::abs(right[i]))) return false;
  return left.size() == right.size();
}

}  // namespace zeroproof
