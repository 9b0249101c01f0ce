#pragma once

#include "props/train/backward_hook.h"
#include "props/train/repeated_calls.h"

namespace zeroproof::train {

// The forwards of a generated window: what their models do otherwise than others, what comes in,
// and the losses that come out.
class WindowForwards {
 public:
  // All must outlive it.
  struct Parts {
    WindowInputs& inputs;
    const RepeatedCalls& repeated;
    BackwardHook& hook;
  };
  WindowForwards(const WindowContext& window, const Parts& parts);

  // Losses of one forward, in the order in which they are differentiated. Recorded.
  TensorList run(const MicroSpec& micro);
  // The first engine's for its next inputs, without what is around it. Recorded.
  void run_plainly(const MicroSpec& micro);
  // As run() of no micro-batch, whose loss nobody scales.
  TensorList run_unscaled();
  // Of the second engine, which has a loss of its own. Recorded.
  Tensor run_second(const MicroSpec& micro);
  // The models for the next forward.
  void arm(const MicroSpec& micro);

  // From now on, in a forward or a backward.
  struct Failure {
    int aborts = 0;             // k: its backward throws Injected behind call k - 1
    int throws = 0;             // k: layer k - 1 throws it inside its forward
    bool is_at_weight = false;  // what throws in a backward is a hook of that layer's weight
  };
  void set_failure(const Failure& failure) { failure_ = failure; }
  // Whether hooks of the user call engines.
  void set_interrupted(bool is_interrupted) { is_interrupted_ = is_interrupted; }

 private:
  bool has_detour(const MicroSpec& micro) const;
  int overflow_of(const MicroSpec& micro) const;
  Tensor bypass(const MicroSpec& micro, const TensorList& inputs);
  Tensor joined(const Tensor& first, const TensorList& inputs);

  const CaseSpec& spec_;
  Pass& pass_;
  const WindowContext& window_;
  WindowInputs& inputs_;
  const RepeatedCalls& repeated_;
  BackwardHook& hook_;
  Failure failure_;
  bool is_interrupted_ = false;
  bool is_unscaled_ = false;
};

}  // namespace zeroproof::train
