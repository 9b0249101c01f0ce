#pragma once

#include <deque>
#include <vector>

#include "engine/zero/stage3/partitioned_parameter.h"

namespace zeroproof {

// Sums the gradients of a bucket over the data group so that each rank gets its slices (zero_
// semantics 2.18b): a reduce-scatter of one buffer that holds slice 0 of every parameter, then
// slice 1 of every parameter, and so on; or one all-reduce. Works on the reduction stream.
class GradientReducer {
 public:
  explicit GradientReducer(ZeroContext& context) : context_(context) {}

  // The rank's slices, divided and summed, in a row as in `parameters`; each is
  // slice_elements() long. Every .grad is whole.
  Tensor reduce(const ParameterList& parameters, DType dtype);

  Stream& stream() const { return context_.runtime.stream(StreamRole::reduction); }

 private:
  Tensor reduce_scatter(const ParameterList& parameters, DType dtype);
  Tensor all_reduce(const ParameterList& parameters, DType dtype);
  Tensor allocate(std::int64_t elements, DType dtype);
  double divisor() const;
  void limit_outstanding();

  ZeroContext& context_;
  std::deque<StreamEvent> outstanding_;
  TensorList buffers_;  // of the reduction that is being queued
};

}  // namespace zeroproof
