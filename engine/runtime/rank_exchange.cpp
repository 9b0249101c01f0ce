#include "engine/runtime/rank_exchange.h"

#include <fmt/format.h>

#include <algorithm>

#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof {

void check_same_calls(const std::vector<std::string>& calls) {
  const auto other =
      std::ranges::find_if(calls, [&](const std::string& call) { return call != calls.front(); });
  if (other == calls.end()) return;
  throw RuntimeFault(
      fmt::format("ranks of a group issue different collectives: rank 0 {}, rank {} {}",
                  calls.front(), other - calls.begin(), *other));
}

}  // namespace zeroproof
