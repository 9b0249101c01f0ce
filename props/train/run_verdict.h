#pragma once

#include <optional>
#include <string>
#include <vector>

#include "props/train/cell_run.h"
#include "props/train/train_run.h"

namespace zeroproof::train {

// What became of a run, before anything is compared: trained, refused as documented, or failed.
TrainReport report_of(const TrainScenario& scenario, const TrainCell& cell, const CellRun& run);

// Weights and optimizer state of all ranks, bitwise (P40): where two differ, in words.
std::optional<std::string> differing_ranks(const std::vector<RankRun>& runs);

// Compares a run that trained, and collected values, with run_baseline() of the same cell.
void check_baseline(const TrainScenario& scenario, const std::vector<RankRun>& runs,
                    const std::vector<WindowValues>& baseline, TrainReport& report);

}  // namespace zeroproof::train
