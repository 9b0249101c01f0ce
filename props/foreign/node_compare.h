#pragma once

#include <optional>
#include <vector>

#include "props/foreign/rank_dump.h"
#include "props/replay/diagnosis.h"

namespace zeroproof {

// The first node of autograd's backward that two ranks execute in another order, by name: sequence
// numbers are those of one process. A window that ends earlier is no difference.
std::optional<Diagnosis> compare_nodes(const std::vector<RankDump>& run);

}  // namespace zeroproof
