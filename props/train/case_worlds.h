#pragma once

#include <cstdint>
#include <string>

#include "props/train/case_additions.h"
#include "props/train/case_spec.h"
#include "props/train/cell_run.h"
#include "props/train/scenario.h"

namespace zeroproof::train {

// In every eighth case, as far as it fits: its first window is trained by a world of its own, with
// another number of ranks, and the case's ranks go on from the checkpoint that it leaves; or each
// rank has a replica in a tensor-parallel group.
Additions world_additions();

// Why a case cannot be so; empty: it can.
std::string world_problem(const CaseSpec& spec);

// Windows of a generated scenario that its own ranks do not run.
std::int64_t windows_elsewhere(const TrainScenario& scenario);
// How many ranks that train different data run a window.
int ranks_of_window(const TrainScenario& scenario, const TrainCell& cell, std::int64_t step);
// Whether gradients of replicas differ, as they do where one alone overflows: nobody compares them.
bool has_gradients_apart(const TrainScenario& scenario);
// Whether the baseline knows what ranks behind the first record: it runs them one after the other,
// so that what one changes at once the next would find changed.
bool records_on_all_ranks(const CaseSpec& spec);
// The first window by those other ranks, one after the other wherever they may choose. Its
// checkpoint is in the scenario's files. Values are not collected.
CellRun run_first_world(const TrainScenario& scenario, const TrainCell& cell);

}  // namespace zeroproof::train
