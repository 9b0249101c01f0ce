#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "engine/precision/gradient_norm.h"
#include "engine/zero/flat_group.h"
#include "engine/zero/gathers_ahead.h"
#include "engine/zero/local_sums.h"
#include "engine/zero/zero_optimizer.h"

namespace zeroproof {

// The parts that stages 0 to 2 share: flat groups with their windows, local sums, and the update.
// Its stages say when a gradient goes from one to the next.
class FlatOptimizer : public ZeroOptimizer {
 public:
  void on_forward_begin(bool ran_epilogue) override;
  std::int64_t on_forward_end(bool has_graph) override;
  void set_rates(const std::vector<GroupRates>& groups) override;
  void begin_capture() override;
  void abandon_capture() override;
  void count_replayed_step() override;
  void gather_ahead() override;
  void visit_state(StateVisitor& visitor) const override;
  std::vector<GradientSlice> gradient_slices() const override;

  std::vector<FullTensor> full_gradients() override;
  std::vector<FullTensor> full_parameters() override;
  std::vector<FullTensor> full_optimizer_state() override;
  std::vector<StateShard> state_shards() override;
  StepCounts step_counts() override;
  void finish_shard_load(const StepCounts& steps) override;

 protected:
  // `ranks` share each group; this one is `rank` of them.
  FlatOptimizer(ZeroContext& context, int ranks, int rank);

  // One step of every group by its window, which stays; all ranks have the new values.
  StepOutcome update_groups();
  // Master weights, states and values of every group and frozen parameter; windows stay.
  void load_groups(const std::vector<FullTensor>& parameters,
                   const std::vector<FullTensor>& states);
  // Windows, local sums and .grad: no gradient is left.
  void drop_windows();
  // The windows, as the next step reads them.
  GradientShards gradient();

  const FlatSlot& slot(const ZeroParameter& parameter) const { return slot_of(slots_, parameter); }
  const FlatSlots& slots() const { return slots_; }
  Tensor& accumulated(const ZeroParameter& parameter) { return sums_.of(parameter); }

  ZeroContext& context_;
  std::deque<FlatGroup> groups_;
  LocalSums sums_;

 private:
  void update_parameters(const GradientDivisor& divisor);
  bool gathers_in_parts() const;
  void update_in_parts(FlatGroup& group, const GradientDivisor& divisor);
  void gather_part(const FlatGroup& group, const FlatRange& part);
  void gather_parameters();

  std::vector<double> whole(const FlatGroup& group, const Tensor& slice) const;
  template <class SliceOf>
  std::vector<FullTensor> full(const char* suffix, SliceOf slice_of);
  void load_slice(FlatGroup& group, const Tensor& slice, const char* suffix,
                  const std::vector<FullTensor>& values) const;

  int ranks_;
  FlatSlots slots_;
  std::unique_ptr<GathersAhead> ahead_;  // null: every update gathers all that it made
};

}  // namespace zeroproof
