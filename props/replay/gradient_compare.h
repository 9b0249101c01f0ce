#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace zeroproof {

// The largest difference that rounding explains, relative to the largest magnitude of the tensor:
// 1e-12 for float64 and 1e-5 for float32 (docs/reference/trace_format.md section 12); 2.5e-3 and
// 2e-2 for float16 and bfloat16, which have 10 and 7 fraction bits.
double relative_tolerance(std::string_view dtype);

// The first element of two tensors that differs by more than rounding.
struct ElementDifference {
  std::size_t index = 0;
  double mine = 0;
  double other = 0;
  double ulps = 0;  // of the run's dtype, at the larger of the two
};

std::optional<ElementDifference> first_difference(const std::vector<double>& mine,
                                                  const std::vector<double>& other,
                                                  std::string_view dtype);

}  // namespace zeroproof
