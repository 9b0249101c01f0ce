#include "props/replay/gradient_compare.h"

#include <algorithm>
#include <cmath>

namespace zeroproof {
namespace {

int fraction_bits(std::string_view dtype) {
  if (dtype == "fp64" || dtype == "float64") return 52;
  if (dtype == "fp16" || dtype == "float16") return 10;
  if (dtype == "bf16" || dtype == "bfloat16") return 7;
  return 23;
}

double magnitude(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  return largest;
}

// NaN equals NaN here: both runs went wrong alike.
bool is_equal(double mine, double other, double tolerance) {
  if (std::isnan(mine) || std::isnan(other)) return std::isnan(mine) && std::isnan(other);
  return mine == other || std::abs(mine - other) <= tolerance;
}

}  // namespace

double relative_tolerance(std::string_view dtype) {
  switch (fraction_bits(dtype)) {
    case 52:
      return 1e-12;
    case 10:
      return 2.5e-3;
    case 7:
      return 2e-2;
    default:
      return 1e-5;
  }
}

std::optional<ElementDifference> first_difference(const std::vector<double>& mine,
                                                  const std::vector<double>& other,
                                                  std::string_view dtype) {
  const double tolerance = relative_tolerance(dtype) * std::max(magnitude(mine), magnitude(other));
  const std::size_t size = std::min(mine.size(), other.size());
  for (std::size_t index = 0; index < size; ++index) {
    if (is_equal(mine[index], other[index], tolerance)) continue;
    const double larger = std::max(std::abs(mine[index]), std::abs(other[index]));
    const double ulp = std::ldexp(1.0, std::ilogb(larger) - fraction_bits(dtype));
    return ElementDifference{index, mine[index], other[index],
                             std::abs(mine[index] - other[index]) / ulp};
  }
  return std::nullopt;
}

}  // namespace zeroproof
