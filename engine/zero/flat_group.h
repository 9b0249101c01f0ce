#pragma once

#include <optional>
#include <vector>

#include "engine/zero/flat_partition.h"
#include "engine/zero/shard_optimizer.h"
#include "engine/zero/zero_context.h"

namespace zeroproof {

// One parameter group in stages 0 to 2: the whole low-precision values in one flat buffer, and of
// the rank's slice the master weights, the optimizer state and the gradient of the window.
class FlatGroup {
 public:
  // The parameters' data become views of the flat buffer; values stay.
  FlatGroup(ZeroContext& context, std::vector<ZeroParameter*> parameters, int ranks, int rank);

  const std::vector<ZeroParameter*>& parameters() const { return parameters_; }
  const FlatPartition& partition() const { return partition_; }
  FlatRange own() const { return own_; }
  // What the rank owns of the parameter at `index`, in flat().
  FlatRange owned(std::size_t index) const { return intersect(partition_.parameter(index), own_); }
  const Tensor& flat() const { return flat_; }
  const Tensor& master() const { return master_; }
  ShardOptimizer& optimizer() { return optimizer_; }

  // The gradient of the window so far: the rank's slice, in the accumulation dtype.
  const Tensor& grad_accumulator() const { return grad_accumulator_; }
  bool has_accumulated() const { return has_accumulated_; }
  // Zeros first, if the window has no gradient yet.
  Span add_to_accumulator();
  // A window without a gradient, to be written from its first element to its last, and the word
  // that this was done.
  Span overwrite_accumulator();
  void mark_accumulated() { has_accumulated_ = true; }
  void clear_accumulator() { has_accumulated_ = false; }

  // What the step reads: the window; with H21 a copy beside it, which has zeros when it is opened.
  Span step_gradient();
  Span open_boundary_copy();

  // What the running backward has reduced; joins the window when it is complete, and gives its
  // memory back then: a forward has its activations there.
  Span open_pending();
  // Adds what the rank owns of a gradient of the parameter at `index`, whole in `source`.
  void add_pending(std::size_t index, Span source);
  bool has_pending() const { return has_pending_; }
  const Tensor& pending() const { return pending_; }  // undefined where no window was opened
  void commit_pending();
  void drop_pending();

  // One step of the rank's slice: master weights, optimizer state, low-precision values.
  void update(Span gradient, const GradientDivisor& divisor);
  // The same by parts of the slice, `part` counted from its begin, after begin_update().
  void begin_update() { optimizer_.begin_step(); }
  void update_part(Span gradient, const GradientDivisor& divisor, const FlatRange& part);
  // Low-precision values from the master weights: the rank's slice of flat().
  void write_back();

 private:
  Span own_values() const { return Span::of(flat_, own_.begin, own_.elements); }

  ZeroContext& context_;
  std::vector<ZeroParameter*> parameters_;
  FlatPartition partition_;
  FlatRange own_;
  Tensor flat_;
  Tensor master_;
  ShardOptimizer optimizer_;
  Tensor grad_accumulator_;
  Tensor boundary_copy_;
  Tensor pending_;
  bool has_accumulated_ = false;
  bool has_pending_ = false;
};

// Where a parameter lies: its group, none if it is frozen, and its number in it.
struct FlatSlot {
  FlatGroup* group = nullptr;
  std::size_t index = 0;
};
using FlatSlots = std::vector<FlatSlot>;  // by ParamId

inline const FlatSlot& slot_of(const FlatSlots& slots, const ZeroParameter& parameter) {
  return slots[static_cast<std::size_t>(parameter.id.value)];
}

}  // namespace zeroproof
