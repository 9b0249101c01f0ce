#pragma once

#include "props/train/train_cell.h"
#include "sim/world/sim_world.h"

namespace zeroproof::train {

// What a cell says about its simulated world: ranks, device, preemption, the compute stream.
SimWorldOptions sim_options_of(const TrainCell& cell);

}  // namespace zeroproof::train
