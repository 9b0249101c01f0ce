#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "props/train/full_values.h"
#include "props/train/train_cell.h"
#include "zeroproof/model/dtype.h"

namespace zeroproof::train {

// Two numbers that should be one, or a tensor that only one side has.
struct Difference {
  std::string name;         // "step 2 gradient l1.linear.weight"
  std::int64_t index = -1;  // row-major; -1: of the tensor as a whole
  double engine = 0.0;
  double baseline = 0.0;
  std::int64_t ulps = 0;  // of the value's dtype at the larger of the two; INT64_MAX: incomparable
};

// How many representable values of the dtype lie between the two.
std::int64_t ulps_between(DType dtype, double a, double b);

// What was compared, and how far apart the farthest were.
struct Comparison {
  bool is_equal = true;  // bitwise, or with real data within the bound
  std::int64_t values = 0;
  std::optional<Difference> first;
  std::optional<Difference> worst;
};

// Exact data have to agree bitwise. With real data, a value may be off by as much as kBoundUlps at
// the largest magnitude of its tensor, in the dtype of the gradients on the wire: what different
// orders of rounding can do to them.
inline constexpr std::int64_t kBoundUlps = 8;

// Ranks record numbers of their own.
enum class Compared : std::uint8_t { everything, all_but_records };

// All windows, in order; gradients are asserted to be non-zero elsewhere.
Comparison compare(const std::vector<WindowValues>& engine,
                   const std::vector<WindowValues>& baseline, const TrainCell& cell,
                   Compared compared = Compared::everything);

// Names of trained parameters of which no step saw a gradient other than zero.
std::vector<std::string> zero_gradients(const std::vector<WindowValues>& windows);

}  // namespace zeroproof::train
