#pragma once

#include "props/train/cell_run.h"
#include "props/train/train_run.h"
#include "props/train_properties.h"

namespace zeroproof::train {

// What a cell is, in the words of the properties.
TrainFacts facts_of(const TrainScenario& scenario, const TrainCell& cell);

// Whether every part of the optimizer state counts the steps that were applied (P61). Of a run
// that collected values.
bool has_equal_step_counts(const TrainScenario& scenario, const std::vector<WindowValues>& windows);

}  // namespace zeroproof::train
