#pragma once

#include <set>
#include <string>
#include <vector>

#include "props/replay/draft.h"

namespace zeroproof {

// Leaves the root causes: what follows from another draft of the same run is left out, and a word
// of it is added to its cause. `explained`: runs whose first divergence has been reported.
std::vector<Draft> drop_consequences(std::vector<Draft> drafts,
                                     const std::set<std::string>& explained);

}  // namespace zeroproof
