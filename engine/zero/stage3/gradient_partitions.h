#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string_view>
#include <vector>

#include "engine/zero/stage3/gradient_bucket.h"
#include "engine/zero/stage3/gradient_reducer.h"
#include "engine/zero/stage3/parameter_gatherer.h"
#include "engine/zero/stage3/sub_group.h"
#include "engine/zero/state_visitor.h"

namespace zeroproof {

// Gradients of stage 3 on their way from .grad to the rank's slices (docs/spec/zero.md 2.18b): a
// bucket a communication dtype, then what the running backward has reduced (pending), then the
// sum of the window. A backward that fails drops what is pending; one that completes commits it:
// the first contribution of a window is copied, later ones are added, in any order of forwards
// and backwards. Quirks H3, H13, H16, H21 and H24 bring upstream's rules.
class GradientPartitions {
 public:
  // All must outlive it.
  GradientPartitions(ZeroContext& context, ParameterGatherer& gatherer,
                     std::deque<SubGroup>& sub_groups);

  // The work of a gradient hook, without an allocation as long as the bucket has room: a parameter
  // whose .grad is as complete as it will be for now. From a leaf module's hook its gradient
  // may be missing: then it is zeros, of the size that the parameter has (gradient_of_wrong_size).
  void add(const ZeroParameter& parameter, bool is_from_leaf_module);
  // The short way for a hook whose .grad is there: false, without an effect, where that is not all.
  bool try_append_fast(const ZeroParameter& parameter) {
    const State& known = state_of(parameter.id);
    return has_no_observer_ && parameter.is_gradient_ready && known.bucket != nullptr &&
           parameter.elements > 0 && known.bucket->try_append_fast(parameter, *known.parameter);
  }
  // Whether its .grad waits in a bucket.
  bool is_held(const ZeroParameter& parameter) const {
    const State& known = state_of(parameter.id);
    return known.bucket != nullptr && known.bucket->holds(parameter);
  }
  // A missing .grad becomes zeros, so that all ranks reduce the same.
  void give_zeros(const PartitionedParameter& parameter, bool is_from_leaf_module) const;
  // gradient_of_wrong_size, parameter_twice_in_bucket.
  void flush_all();
  // What is computed from here on finds all reductions done.
  void await_reductions();
  // The backward is complete.
  void commit();
  // It failed: its part of .grad, the buckets and what is pending are dropped.
  void drop_backward();
  // Buckets, what is pending, and the window.
  void visit_state(StateVisitor& visitor) const;
  // Whether the running backward has reduced anything.
  bool has_pending() const;
  // The next window begins.
  void start_window();
  // A forward begins (H3).
  void on_forward_begin(bool ran_epilogue);

  // The window's gradient as the update takes it. Zeros where no gradient came.
  void prepare_update();
  void finish_update();
  bool has_contribution(const PartitionedParameter& parameter) const {
    return state(parameter).has_accumulated;
  }
  // Managed offload takes over what fires at the boundary (H21); here: everything active.
  void copy_to_hp(bool is_boundary_only);

 private:
  struct State {
    SubGroup* sub_group = nullptr;  // null: frozen
    PartitionedParameter* parameter = nullptr;
    GradientBucket* bucket = nullptr;
    std::size_t index = 0;
    bool has_accumulated = false;
    bool has_pending = false;
  };

  const State& state_of(ParamId id) const { return states_[static_cast<std::size_t>(id.value)]; }
  State& state(const PartitionedParameter& parameter) {
    return states_[static_cast<std::size_t>(parameter.id().value)];
  }
  const State& state(const PartitionedParameter& parameter) const {
    return state_of(parameter.id());
  }
  void reduce_bucket(GradientBucket& bucket);
  static void check(const GradientBucket& bucket);
  void partition(const ParameterList& parameters, const Tensor& slices);
  void keep_queued(const ParameterList& parameters, const Tensor& slices);
  bool overwrites_pending() const;
  bool overwrites_window(const State& its) const;
  void report_flush(const GradientBucket& bucket) const;

  ZeroContext& context_;
  bool has_no_observer_;  // no recorder, no fault injection
  GradientReducer reducer_;
  std::map<std::string_view, GradientBucket> buckets_;  // by the dtype's name: the order of flushes
  std::vector<State> states_;                           // by ParamId
  std::deque<SubGroup>& sub_groups_;
  std::int64_t micro_step_ = 0;           // H3: forwards after completed backwards
  std::int64_t completed_backwards_ = 0;  // of the window
};

}  // namespace zeroproof
