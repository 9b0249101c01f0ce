#pragma once

#include "props/train/weight_visit.h"
#include "props/train/window_checkpoints.h"
#include "props/train/window_inputs.h"

namespace zeroproof::train {

// What the user's hook does in the middle of a backward.
class BackwardHook {
 public:
  // All must outlive it.
  BackwardHook(const WindowContext& window, WindowInputs& inputs, WindowCheckpoints& checkpoints);

  // The Interrupt of the micro-batch whose backward runs.
  void run(const MicroSpec& micro);
  // Behind the micro-batch, which has seen what the hook changed.
  void undo_changes();

 private:
  void change_weights();
  void evaluate();
  void differentiate_inside(std::size_t engine);
  void differentiate_aside(bool fails);
  void break_second(int call);
  bool refuses_step(const MicroSpec& micro);

  const CaseSpec& spec_;
  Pass& pass_;
  EngineTarget* engines_;
  const WindowContext& window_;
  WindowInputs& inputs_;
  WindowCheckpoints& checkpoints_;
  WeightValues unchanged_;  // what weights were before
};

}  // namespace zeroproof::train
