#include "zeroproof/model/dtype.h"

#include <array>
#include <cmath>
#include <limits>

namespace zeroproof {
namespace {

constexpr std::array<std::string_view, 4> kDTypeNames = {"float64", "float32", "bfloat16",
                                                         "float16"};

struct Format {
  int precision_bits;  // of the significand, the hidden one included
  int exponent_min;    // of the smallest normal number
  double max;
};

// nearbyint rounds ties to even: the rounding mode is never changed.
double round_to(const Format& format, double value) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.exponent_min);
  const int shift = format.precision_bits - 1 - exponent;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, shift)), -shift);
  if (std::abs(rounded) <= format.max) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

}  // namespace

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::float64:
      break;
    case DType::float32:
      return static_cast<double>(static_cast<float>(value));
    case DType::bfloat16:
      return round_to(Format{8, -126, 0x1.fep127}, value);
    case DType::float16:
      return round_to(Format{11, -14, 65504.0}, value);
  }
  return value;
}

std::string_view dtype_name(DType dtype) {
  return kDTypeNames[static_cast<std::size_t>(dtype)];
}

std::optional<DType> dtype_of(std::string_view name) {
  for (std::size_t i = 0; i < kDTypeNames.size(); ++i)
    if (kDTypeNames[i] == name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace zeroproof
