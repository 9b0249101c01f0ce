#pragma once

#include <cstdint>

namespace zeroproof {

// Time of one rank, for viewing and time-outs only: no decision of the engine reads it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t now_ns() const = 0;  // monotonic; virtual time in the simulator
};

}  // namespace zeroproof
