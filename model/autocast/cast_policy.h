#pragma once

#include <cstdint>

namespace zeroproof {

// What autocast does with the inputs of an operation (rule M1).
enum class CastPolicy : std::uint8_t {
  none,
  lower_precision,  // casts them to the region's dtype
  float32,          // casts them to float32
  float32_result,   // casts no input: the operation itself computes in and returns float32
  promote,          // casts the members of a list to float32 if one of them is that
};

// PyTorch's lists differ between the CPU and accelerators.
struct CastPolicies {
  CastPolicy cpu = CastPolicy::none;
  CastPolicy accelerator = CastPolicy::none;

  constexpr CastPolicies() = default;
  constexpr CastPolicies(CastPolicy both) : cpu(both), accelerator(both) {}  // NOLINT: a shorthand
  constexpr bool is_any() const {
    return cpu != CastPolicy::none || accelerator != CastPolicy::none;
  }
};

constexpr CastPolicies on_cpu(CastPolicy policy) {
  CastPolicies policies;
  policies.cpu = policy;
  return policies;
}

constexpr CastPolicies on_accelerators(CastPolicy policy) {
  CastPolicies policies;
  policies.accelerator = policy;
  return policies;
}

}  // namespace zeroproof
