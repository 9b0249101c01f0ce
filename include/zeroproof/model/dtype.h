#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace zeroproof {

// How the elements of a tensor are rounded. The reference keeps every element in a double; a
// value of a narrower type is the double that is exactly that value.
enum class DType : std::uint8_t { float64, float32, bfloat16, float16 };

// The nearest value of `dtype`, ties to even; overflow gives an infinity, NaN stays NaN. One
// operation in double followed by this gives what the narrower type's own operation gives.
double round_to(DType dtype, double value);

// PyTorch's word without "torch.": "float64". Static.
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_of(std::string_view name);

// What one element takes on a real device.
constexpr std::int64_t item_bytes(DType dtype) {
  return dtype == DType::float64 ? 8 : dtype == DType::float32 ? 4 : 2;
}

// What an operation on both computes in: the wider one.
constexpr DType promote(DType a, DType b) {
  const bool is_mixed_half = a != b && a >= DType::bfloat16 && b >= DType::bfloat16;
  return is_mixed_half ? DType::float32 : (a < b ? a : b);
}

}  // namespace zeroproof
