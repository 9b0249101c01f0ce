#pragma once

#include <cstdint>

namespace zeroproof {

// What autocast distinguishes.
enum class DeviceType : std::uint8_t { cpu, accelerator };

// Where a tensor lives, and so which simulated thread runs the nodes that made it (rules Q3, Q4).
// The numbers are computed by the same reference either way.
struct Device {
  std::int16_t accelerator = -1;  // its index; -1: the CPU

  static constexpr Device cpu() { return {}; }
  static constexpr Device cuda(std::int16_t index) { return {index}; }
  constexpr bool is_cpu() const { return accelerator < 0; }
  constexpr DeviceType type() const { return is_cpu() ? DeviceType::cpu : DeviceType::accelerator; }
  friend constexpr bool operator==(Device, Device) = default;
};

// A queue of work of one accelerator; 0 is its default stream. Which one is current is kept per
// thread and device (rule Q7).
using StreamIndex = std::int32_t;

}  // namespace zeroproof
