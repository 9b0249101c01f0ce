#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/explorer.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// When an exploration ends at the latest.
struct SearchBudget {
  Budget work;                          // executions, steps
  std::optional<std::int64_t> time_ns;  // wall time of one exploration
};

// "60s", "5m", "10000x" executions, "100Mstep" choices; several with commas. Code usage.
Result<SearchBudget> parse_budget(std::string_view text);

}  // namespace zeroproof
