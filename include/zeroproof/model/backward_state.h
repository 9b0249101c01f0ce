#pragma once

#include <compare>
#include <cstdint>

#include "zeroproof/model/ids.h"

namespace zeroproof {

// The counters and flags of upstream's hook-state manager (docs/spec/zero.md 1.2), one field per
// concept. Plain data: a policy keeps it, an event records it, a property reads it.
struct BackwardState {
  std::int32_t remaining_hooks = 0;         // rem
  std::int32_t post_hooks = 0;              // size of H
  std::int32_t active_depth = 0;            // d
  bool is_backward_seen_this_step = false;  // seen
  bool ran_epilogue_this_backward = false;  // epi, written by the optimizer's epilogue
  std::int32_t hooks_fired = 0;             // fired
  std::int32_t max_expected_hooks = 0;      // maxE
  bool is_callback_queued = false;          // q
  GraphTaskId callback_graph_task;          // qg, diagnostic only

  friend auto operator<=>(const BackwardState&, const BackwardState&) = default;
};

}  // namespace zeroproof
