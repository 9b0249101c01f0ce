#pragma once

#include <cstdint>
#include <vector>

#include "engine/zero/flat_partition.h"
#include "engine/zero/shard_optimizer.h"
#include "engine/zero/stage3/partitioned_parameter.h"

namespace zeroproof {

// Parameters of one optimizer group that are updated together, at most sub_group_size elements
// (docs/spec/zero.md 2.18b, 2.19): of each the rank's slice, in a row, as master
// weights, optimizer state and gradient. Slices have their padding here; it is zero throughout.
class SubGroup {
 public:
  SubGroup(ZeroContext& context, ParameterList parameters);

  const ParameterList& parameters() const { return parameters_; }
  std::int64_t elements() const { return elements_; }
  // Of the slice at `index`: own_elements() only.
  FlatRange own(std::size_t index) const {
    return {offsets_[index], parameters_[index]->own_elements()};
  }
  FlatRange padded(std::size_t index) const {
    return {offsets_[index], parameters_[index]->slice_elements()};
  }

  const Tensor& master() const { return master_; }
  ShardOptimizer& optimizer() { return optimizer_; }
  // The window's gradients, in the accumulation dtype, where the master weights are.
  const Tensor& grad_accumulator() const { return grad_accumulator_; }
  // What the running backward has reduced so far; on the device. It has memory from the first
  // bucket on and gives it back with the window's sum: a forward has its activations there.
  const Tensor& pending() const { return pending_; }
  const Tensor& open_pending();
  void close_pending(Stream& reduction);  // which may still be at work on it
  // What the update reads where that is not the window itself (offload); undefined otherwise.
  const Tensor& hp_gradient() const { return hp_gradient_; }

  // One step: master weights, optimizer state, low-precision slices.
  void update(Span gradient, const GradientDivisor& divisor);
  // Low-precision slices from master weights, or the other way round. An update writes them itself
  // where they are contiguous.
  void write_back() const;
  void read_slices() const;

 private:
  void join_slices();

  ZeroContext& context_;
  ParameterList parameters_;
  std::vector<std::int64_t> offsets_;
  std::int64_t elements_ = 0;
  Tensor slices_;  // of all parameters, as master_ has them; undefined: each for itself
  Tensor master_;
  Tensor grad_accumulator_;
  Tensor pending_;
  Tensor hp_gradient_;
  ShardOptimizer optimizer_;
};

}  // namespace zeroproof
