#pragma once

#include <cstdint>

namespace zeroproof {

// What an engine counts.
struct EngineCounters {
  std::int64_t micro_steps = 0;
  std::int64_t global_steps = 0;
  std::int64_t skipped_steps = 0;
  std::int64_t global_samples = 0;
  std::int64_t backwards = 0;  // since the last step
};

}  // namespace zeroproof
