#pragma once

#include "props/train/window_forwards.h"

namespace zeroproof::train {

// What a generated window does that engines refuse. What came of it is recorded; the baseline
// knows.
class WindowMisuses {
 public:
  // All must outlive it.
  WindowMisuses(const WindowContext& window, WindowInputs& inputs, WindowForwards& forwards);

  void run(Misuse misuse);
  // Where it has made a backward fail, the window begins anew.
  void run_and_clear(Misuse misuse);
  // `misscales` of a micro-batch.
  void misscale(int misscales);

 private:
  bool refuses_unfed_leaf();
  bool refuses_unscaled_second();
  bool refuses_past_manual();
  bool refuses_others_loss();

  const WindowContext& window_;
  WindowInputs& inputs_;
  WindowForwards& forwards_;
};

// fp16: another loss scale than that of the window's gradients, by the first engine.
bool refuses_rescale(const WindowContext& window);

}  // namespace zeroproof::train
