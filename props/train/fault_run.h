#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "props/train/cell_run.h"
#include "props/train/kept_checkpoints.h"
#include "props/train/scenario.h"
#include "sim/world/planned_faults.h"

namespace zeroproof::train {

// The programs of all ranks of a cell, and how they take up training after a fault:
//   - all ranks meet it and catch it: they drop their gradients and run the window again, or, when
//     some of it was stepped already, load the checkpoint from its beginning first;
//   - engines that were given up are made again, and load it;
//   - the step of a window with an overflow is skipped by all, and the window run again;
//   - a program that ended takes its world with it: a fresh one makes engines, loads the last
//     checkpoint and goes on.
struct FaultRun {
  CellRun cell;  // every window as it succeeded; of the last world
  std::vector<sim::Fault> plan;
  std::vector<sim::Fault> struck;  // of the plan
  std::uint64_t redone = 0;        // windows, of rank 0
  std::uint64_t restored = 0;      // from a checkpoint, within a world
  std::uint64_t worlds = 1;
  std::vector<sim::Fault> places;  // where a fault can strike; of a run without any
  std::string problem;             // what no fault may lead to, in a word; empty: none
  std::string problem_text;
};

// A fault strikes in one of the first windows: the second one has the state after the first.
constexpr std::int64_t fault_windows(std::int64_t steps) {
  return steps < 2 ? steps : 2;
}

struct FaultRunOptions {
  std::vector<sim::FaultKind> kinds;  // of `places`
  std::vector<sim::Fault> plan;
  bool judges_streams = false;     // P46 to P48, of worlds that came to their end
  LoadedStates* loaded = nullptr;  // shared by runs of one cell; null: no state is known yet
};

// Whether a cell looks for gradients that are not finite; where it does not, none is planned.
bool checks_overflow(const TrainScenario& scenario, const TrainCell& cell);

// In simulated worlds, one after the other. `cell.sim` says where ranks may be preempted.
FaultRun run_with_faults(const TrainScenario& scenario, const TrainCell& cell,
                         const FaultRunOptions& options, Chooser& chooser);

}  // namespace zeroproof::train
