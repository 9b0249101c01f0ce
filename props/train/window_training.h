#pragma once

#include "props/train/window_backwards.h"
#include "props/train/window_forwards.h"

namespace zeroproof::train {

// Forwards and their backwards, as a micro-batch of a generated window trains.
class WindowTraining {
 public:
  // All must outlive it.
  WindowTraining(const WindowContext& window, WindowForwards& forwards, WindowBackwards& backwards);

  // All that is trained in the block of the micro-batch, and what fails or is cleared in there.
  void in_block(const MicroSpec& micro);
  void once(const MicroSpec& micro);
  // The first forward of a micro-batch that is still to come.
  void run_ahead(const MicroSpec& next);

 private:
  TensorList first_forward(const MicroSpec& micro);
  void train_body(const MicroSpec& micro);
  void train_first(const MicroSpec& micro);
  void train_second_engine(const MicroSpec& micro);
  void train_two(const MicroSpec& micro, TensorList first);
  void train_three(const MicroSpec& micro, TensorList first);
  void train_branches(const MicroSpec& micro);
  void abort_inside(const MicroSpec& micro);
  void make_hooks_anew();

  const CaseSpec& spec_;
  Pass& pass_;
  const WindowContext& window_;
  WindowForwards& forwards_;
  WindowBackwards& backwards_;
  TensorList ahead_;  // losses of the next micro-batch
};

}  // namespace zeroproof::train
