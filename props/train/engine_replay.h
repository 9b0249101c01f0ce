#pragma once

#include <optional>
#include <string>

#include "props/train/case_runner.h"
#include "props/train/runtime_comparison.h"

namespace zeroproof::train {

// A schedule that ran again.
struct EngineReplay {
  std::string source;  // the file, or the schedule itself
  Schedule schedule;
  CaseRun run;
  std::string divergence;               // why the schedule does not fit; empty when it does
  std::optional<std::string> expected;  // what it promises to show ("deadlock", "none")
  std::optional<RuntimeComparison> host;

  bool is_reproduced() const;
};

// What runs the node order of a schedule as well.
enum class Beside : std::uint8_t { nothing, host, cuda };

// Runs the schedule in the simulated world and, if asked to, its node order on another runtime.
// Errors as of case_of() and open_gpus().
Result<EngineReplay> replay_engine(const std::string& source, const Schedule& schedule,
                                   Beside beside);

}  // namespace zeroproof::train
