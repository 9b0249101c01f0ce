#include "engine/checkpoint/element_bits.h"

#include <bit>
#include <cmath>
#include <limits>

namespace zeroproof {
namespace {

std::uint32_t float_bits(double value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

constexpr std::uint64_t kHalfInfinity = 0x7c00;
constexpr double kHalfMax = 65504.0;
constexpr double kHalfMinNormal = 0x1p-14;

std::uint64_t half_magnitude(double value) {
  if (std::isnan(value)) return kHalfInfinity | 0x200;
  if (value > kHalfMax) return kHalfInfinity;
  if (value < kHalfMinNormal) return static_cast<std::uint64_t>(value * 0x1p24);
  const int exponent = std::ilogb(value);
  const auto significand = static_cast<std::uint64_t>(std::ldexp(value, 10 - exponent));
  return (static_cast<std::uint64_t>(exponent + 15) << 10) | (significand & 0x3ff);
}

double half_value(std::uint64_t magnitude) {
  const auto exponent = static_cast<int>(magnitude >> 10);
  const auto fraction = static_cast<double>(magnitude & 0x3ff);
  if (exponent == 31) {
    return fraction == 0 ? std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  return exponent == 0 ? fraction * 0x1p-24 : std::ldexp(fraction + 1024.0, exponent - 25);
}

}  // namespace

std::uint64_t encode_element(DType dtype, double value) {
  switch (dtype) {
    case DType::float64:
      return std::bit_cast<std::uint64_t>(value);
    case DType::float32:
      return float_bits(value);
    case DType::bfloat16:
      return float_bits(value) >> 16;
    case DType::float16:
      return (std::signbit(value) ? 0x8000U : 0U) | half_magnitude(std::fabs(value));
  }
  return 0;
}

double decode_element(DType dtype, std::uint64_t bits) {
  switch (dtype) {
    case DType::float64:
      return std::bit_cast<double>(bits);
    case DType::float32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case DType::bfloat16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16));
    case DType::float16:
      return std::copysign(half_value(bits & 0x7fff), (bits & 0x8000) != 0 ? -1.0 : 1.0);
  }
  return 0.0;
}

}  // namespace zeroproof
