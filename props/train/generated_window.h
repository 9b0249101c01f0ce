#pragma once

#include <cstddef>

#include "props/train/micro_batches.h"
#include "props/train/window_checkpoints.h"

namespace zeroproof::train {

// One window of a CaseSpec on one rank: the same text for engines and baseline.
class GeneratedWindow {
 public:
  // Both must outlive it. `is_lost`: it will be loaded away.
  GeneratedWindow(const CaseSpec& spec, Pass& pass, bool is_lost = false);
  GeneratedWindow(const GeneratedWindow&) = delete;  // its parts know each other
  GeneratedWindow& operator=(const GeneratedWindow&) = delete;

  // With what comes before the window, and behind it. All ranks call.
  void run();
  // The window alone, with its last step or without.
  void train(bool ends);

 private:
  std::size_t first_micro() const;
  bool is_taken_over() const;
  void run_in_another_order();
  void step(bool is_boundary);

  const CaseSpec& spec_;
  Pass& pass_;
  WindowContext window_;
  WindowCheckpoints checkpoints_;
  MicroBatches micros_;
};

}  // namespace zeroproof::train
