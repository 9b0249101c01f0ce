#pragma once

#include <vector>

#include "props/scenario.h"

namespace zeroproof {

// Every scenario that is one part smaller: without a statement, a pre-user backward, a node (its
// predecessors then lead to its successors) or an idle leaf module. Parts that lose their last use
// go with it. Whole statements first.
std::vector<Scenario> smaller_scenarios(const Scenario& scenario);

}  // namespace zeroproof
