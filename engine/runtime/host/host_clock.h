#pragma once

#include <chrono>

#include "zeroproof/internal/engine/runtime/clock.h"

namespace zeroproof::host {

class HostClock final : public Clock {
 public:
  std::int64_t now_ns() const override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  }
};

}  // namespace zeroproof::host
