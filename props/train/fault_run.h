#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/choice.h"
#include "props/train/cell_run.h"
#include "props/train/scenario.h"
#include "sim/world/planned_faults.h"

namespace zeroproof::train {

// A first window in which one fault strikes, then zero_grad, then windows without any.
struct FaultRunOptions {
  std::int64_t clean_windows = 1;
  std::optional<sim::Fault> fault;  // none: the run that finds the places
};

struct FaultRun {
  CellRun cell;  // the clean windows of each rank
  std::vector<sim::Fault> places;
  bool has_struck = false;
  // What the fault has ended for good: a rank's program, or a group that all ranks need. The
  // engines are given up then, and a fresh world has to take over.
  bool needs_fresh_world = false;
};

// In the simulated world. A fault that meets all ranks at the same place is caught where the
// window is called, as a training loop would; one that meets a single rank ends its program, as
// the others cannot know that the window is abandoned.
FaultRun run_with_fault(const TrainScenario& scenario, const TrainCell& cell,
                        const FaultRunOptions& options, Chooser& chooser);

// How the clean windows differ from those of a run that nothing has happened to: their gradients
// on all ranks, or that they are missing. Empty: not at all.
std::string difference_after_fault(const FaultRun& run, const FaultRun& clean,
                                   const TrainCell& cell);

}  // namespace zeroproof::train
