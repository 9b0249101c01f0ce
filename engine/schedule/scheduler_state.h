#pragma once

#include <cstdint>
#include <string>

namespace zeroproof {

// What a checkpoint keeps of a scheduler.
struct SchedulerState {
  std::string type;  // "WarmupLR"
  std::int64_t last_batch_iteration = -1;
  friend bool operator==(const SchedulerState&, const SchedulerState&) = default;
};

}  // namespace zeroproof
