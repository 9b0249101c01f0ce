#pragma once

#include "model/autocast/cast_policy.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;

// The inputs of an operation as the autocast regions of the current thread want them (rule M1):
// eligible ones (floating, not float64, on the region's kind of device) go through a cast node
// each, leaves through a cached one. The last input is cast first (N5), except for a list. Throws
// AutogradError when two narrow dtypes meet in a list.
TensorList cast_inputs(Autograd& ag, CastPolicies policies, const TensorList& inputs);

// Whether the operation itself is to compute in float32 here.
bool is_float32_result(const Autograd& ag, CastPolicies policies, const TensorList& inputs);

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
