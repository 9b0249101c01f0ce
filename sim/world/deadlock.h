#pragma once

#include <memory>
#include <string>
#include <vector>

namespace zeroproof::sim {

class RankTask;

// Who waits for whom, where no rank can go on: for each rank the collective or event that holds it
// up and the ranks that are missing there, and the cycle among them, if there is one.
std::string describe_deadlock(const std::vector<std::unique_ptr<RankTask>>& ranks);

}  // namespace zeroproof::sim
