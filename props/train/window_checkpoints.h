#pragma once

#include <functional>
#include <string>

#include "props/train/checkpoint_use.h"
#include "props/train/window_context.h"

namespace zeroproof::train {

// What a generated window does with checkpoints and loads. The baseline does not stop: it records
// that it has no faults. All ranks call.
class WindowCheckpoints {
 public:
  // The context must outlive it.
  explicit WindowCheckpoints(const WindowContext& window);

  // Trains the window of this pass for nothing, with its last step or without.
  using TrainLost = std::function<void(Pass& lost, bool ends)>;

  // By ranks that have not trained what comes before: what those have saved. Returns faults.
  int take_over();
  void record_faults(int faults);
  // Saved, trained on, and loaded: the window that `first` begins was never there.
  void restore(const MicroSpec& first, const TrainLost& train);
  // Before anything is trained: of a case whose scale grows.
  void age_scaler();
  // What stops a program, and changes nothing.
  void try_out(const MicroSpec& micro);
  // In the middle of a backward.
  void save_inside();
  // For whoever takes over.
  void save_last();

 private:
  struct Restored {
    int faults = 0;
    std::int64_t left_bytes = 0;  // of engines that were renewed
  };

  Restored train_and_load(const MicroSpec& first, const TrainLost& train);
  void load_latest(CheckpointUse& checkpoints);
  void use(const std::function<void(CheckpointUse& checkpoints)>& use);
  void overwrite_weights();
  void fill(const TensorList& tensors, double value);

  const CaseSpec& spec_;
  Pass& pass_;
  EngineTarget* engines_;
};

}  // namespace zeroproof::train
