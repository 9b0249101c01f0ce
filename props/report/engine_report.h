#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "props/exploration_status.h"
#include "props/report/junit.h"
#include "props/report/palette.h"
#include "props/train/engine_exploration.h"
#include "props/train/engine_replay.h"

namespace zeroproof {

// What an exploration of a cell comes to; `inconclusive`: a scheduler that covers all has not, or a
// condition that some execution has to reach was not reached.
ExplorationStatus status_of(const train::EngineExplorationReport& report);

// One exploration with the time it took, which is the only thing here that is no function of the
// flags.
struct TimedExploration {
  train::EngineExplorationReport report;
  double seconds = 0.0;
};

// For people.
std::string engine_exploration_text(const TimedExploration& exploration, const Palette& palette);

// "zeroproof.explore_engine/1" of docs/reference/output.md, without a final line end.
std::string engine_exploration_json(const std::vector<TimedExploration>& explorations,
                                    std::uint64_t seed);

// One case an exploration.
std::vector<JUnitCase> engine_exploration_cases(const std::vector<TimedExploration>& explorations);

std::string engine_replay_text(const train::EngineReplay& replay, const Palette& palette);
// "zeroproof.replay_engine/1".
std::string engine_replay_json(const std::vector<train::EngineReplay>& replays);
std::vector<JUnitCase> engine_replay_cases(const std::vector<train::EngineReplay>& replays);

}  // namespace zeroproof
