#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "props/train/cell_run.h"
#include "props/train/fault_target.h"
#include "props/train/kept_checkpoints.h"

namespace zeroproof::train {

// What the programs of all ranks leave for those of the next world.
struct FaultProgress {
  explicit FaultProgress(LoadedStates& loaded) : checkpoints(loaded) {}

  KeptCheckpoints checkpoints;
  std::int64_t saved = -1;  // the window that the newest checkpoint is the beginning of
  std::uint64_t redone = 0;
  std::uint64_t restored = 0;
};

// The program of one rank. A fault that meets all ranks is caught where the window is called, as a
// training loop would; one that meets a single rank ends its program, as the others cannot know
// that the window is abandoned.
class FaultRank {
 public:
  // References must outlive it.
  FaultRank(const TrainScenario& scenario, const TrainCell& cell, Runtime& runtime,
            sim::PlannedFaults& faults, FaultProgress& progress);

  // All windows from the one of the newest checkpoint on; those before stay as they are.
  void run(RankRun& run);

 private:
  // How a window ended; ranks agree on the worst.
  enum class Ending : std::uint8_t { done, redo, restore };

  Ending try_window(std::int64_t window);
  Ending judge_failure() const;
  Ending judge_window(const WindowValues& values);
  Ending agreed(Ending own);
  void save(std::int64_t window);
  void load(std::int64_t window);
  void make_engines();
  void remake_engines();
  void zero_grad();
  void note_counters();
  bool is_untouched() const;
  std::int64_t live_bytes() const;

  const TrainScenario& scenario_;
  const TrainCell& cell_;
  Runtime& runtime_;
  sim::PlannedFaults& faults_;
  FaultProgress& progress_;
  std::unique_ptr<FaultTarget> target_;
  WindowValues values_;                    // of the window that ended
  std::vector<std::int64_t> micro_steps_;  // of the engines, where the window began
  std::vector<std::int64_t> global_steps_;
};

// The checkpoint from which a fresh world goes on: what a model keeps besides its parameters is not
// in one.
std::int64_t resumable_window(const TrainScenario& scenario, std::int64_t saved);

}  // namespace zeroproof::train
