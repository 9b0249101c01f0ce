#pragma once

#include <cstdint>
#include <optional>

#include "props/cli/exit_code.h"
#include "props/exploration_status.h"
#include "props/report/progress.h"
#include "props/train/engine_exploration.h"
#include "sim/explorer.h"

namespace zeroproof {

// What explorations of all levels share on the command line.

ExitCode exit_code_of(ExplorationStatus status);

std::int64_t now_ns();  // monotonic

// Shows how far it is in `view`, and stops when the user interrupts or `time_ns` from now is over.
// Both references must outlive it.
ExploreWatch watch_for(ProgressLine& progress, ProgressView& view,
                       std::optional<std::int64_t> time_ns);

// The same for an exploration at engine level.
train::EngineWatch engine_watch_for(ProgressLine& progress, ProgressView& view,
                                    std::optional<std::int64_t> time_ns);

}  // namespace zeroproof
