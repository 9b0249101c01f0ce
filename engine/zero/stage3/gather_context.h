#pragma once

#include <optional>

#include "engine/zero/stage3/parameter_gatherer.h"

namespace zeroproof {

// deepspeed.zero.GatheredParameters (docs/spec/zero.md 3.9): the listed parameters whole on all
// ranks for a while. `exit` ends it in the ordinary way, the destructor after an exception: depth
// is restored and everything partitioned either way. Collective.
class GatherContext {
 public:
  // gather_contexts_overlap when one of them is in another context already, without a change.
  GatherContext(ZeroContext& context, ParameterGatherer& gatherer, const TensorList& parameters,
                std::optional<int> modifier_rank);
  ~GatherContext();
  GatherContext(const GatherContext&) = delete;
  GatherContext& operator=(const GatherContext&) = delete;

  // modified_without_modifier_rank: with sanity checks, changes without a modifier rank; everything
  // is partitioned by then. gathered_parameter_left_device: a parameter left the device.
  void exit();

 private:
  void enter();
  void report_begin() const;
  void report_end(bool has_raised) const;
  HookEvent event_of(EventKind kind) const;
  void take_over_changes();
  bool is_modified_anywhere() const;
  static bool is_modified(const PartitionedParameter& parameter);
  void partition_all(bool has_been_updated);
  void leave();

  ZeroContext& context_;
  ParameterGatherer& gatherer_;
  std::optional<int> modifier_rank_;
  ParameterList parameters_;  // by id, once each
  bool is_entered_ = false;
  int exceptions_ = 0;  // that pass as it begins
};

}  // namespace zeroproof
