#pragma once

#include <vector>

#include "engine/config/ds_config.h"
#include "props/train/scenario.h"

namespace zeroproof::train {

// The scenario under the cell's configuration: where its window is one micro-batch, the window
// repeats it as often as the configuration accumulates. Any other scenario, and a cell without a
// configuration, is returned as it is.
TrainScenario configured(const TrainScenario& scenario, const TrainCell& cell);

// What of the cell's configuration the (configured) scenario and the flags replace.
std::vector<ConfigNote> replaced_notes(const TrainScenario& scenario, const TrainCell& cell);

}  // namespace zeroproof::train
