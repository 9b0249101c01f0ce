#pragma once

#include <memory>

#include "zeroproof/internal/model/local_state.h"
#include "zeroproof/internal/model/transforms/transform_frame.h"

namespace zeroproof {

class Autograd;

// The innermost transform taken off the stack for a while: what an operation runs in once its
// level is done with it. Below a Grad level, grad mode is off if it was off where
// the transform was entered (rule T2).
class LowerLayer {
 public:
  explicit LowerLayer(Autograd& autograd);
  ~LowerLayer();
  LowerLayer(const LowerLayer&) = delete;
  LowerLayer& operator=(const LowerLayer&) = delete;

 private:
  Autograd& autograd_;
  std::shared_ptr<const TransformFrame> frame_;
  bool was_grad_enabled_;
};

// A new level on top of the stack for a while (rule T1): its wrappers are dead afterwards. Hooks
// may push and pop further levels in between, in order.
class TransformLevel {
 public:
  TransformLevel(Autograd& autograd, TransformKind kind, std::int64_t batch_size = 0);
  ~TransformLevel();
  TransformLevel(const TransformLevel&) = delete;
  TransformLevel& operator=(const TransformLevel&) = delete;

  const TransformFrame& frame() const { return *frame_; }

 private:
  Autograd& autograd_;
  std::shared_ptr<const TransformFrame> frame_;
};

// The whole stack emptied for a while: what is made meanwhile is no wrapper and may become the data
// of an ordinary parameter (rule T9).
class NoTransforms {
 public:
  explicit NoTransforms(Autograd& autograd);
  ~NoTransforms();
  NoTransforms(const NoTransforms&) = delete;
  NoTransforms& operator=(const NoTransforms&) = delete;

 private:
  Autograd& autograd_;
  std::shared_ptr<const TransformFrame> before_;
};

}  // namespace zeroproof
