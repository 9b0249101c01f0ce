#pragma once

#include <string>
#include <vector>

#include "props/reference/world.h"
#include "props/train/scenario.h"

namespace zeroproof::train {

// The tensor-parallel groups of a world, as communicators name them; none where each would be a
// rank alone.
std::vector<std::string> tensor_group_names(int world_size, int tensor_ranks);

// What the reference walker has to know of the engines of a cell, on any rank. `unseen`: what the
// scenario's program does that leaves no event.
std::vector<reference::World> reference_worlds(const TrainScenario& scenario, const TrainCell& cell,
                                               const reference::Unseen& unseen);

// Of a scenario of the catalogue.
reference::Unseen unseen_of(const TrainScenario& scenario, const TrainCell& cell);

}  // namespace zeroproof::train
