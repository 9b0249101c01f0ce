#pragma once

#include <vector>

#include "sim/hook_order/world.h"
#include "zeroproof/internal/model/choice.h"

namespace zeroproof::hook_order {

struct Run {
  Property violated = Property::none;  // what was violated first; the run ends there
  std::string explanation;
  std::vector<Move> moves;
  Fingerprint final_state;  // where `takes_final_state`
};

struct RunOptions {
  bool keeps_moves = false;
  bool takes_final_state = false;
};

// One execution, decided by the chooser at site "hook_order.next"; for any Scheduler. The world is
// at its beginning before and after, also when ExecutionCut passes through.
Run run(World& world, Chooser& chooser, const RunOptions& options = {});

}  // namespace zeroproof::hook_order
