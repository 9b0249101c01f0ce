#pragma once

#include "model/op.h"

namespace zeroproof {

class Autograd;

// The inputs of an operation as the autocast regions of the current thread want them (rule M1):
// eligible floating inputs go through a cast node each, leaves through a cached one.
TensorList cast_inputs(Autograd& ag, CastPolicy policy, const TensorList& inputs);

// No autocast for a while: an operation has cast its inputs and what it is made of must not again.
class AutocastExclusion {
 public:
  explicit AutocastExclusion(Autograd& autograd);
  ~AutocastExclusion();
  AutocastExclusion(const AutocastExclusion&) = delete;
  AutocastExclusion& operator=(const AutocastExclusion&) = delete;

 private:
  Autograd& autograd_;
  bool was_excluded_;
};

}  // namespace zeroproof
