#pragma once

#include <cstdint>
#include <vector>

#include "engine/zero/bucketed_gradients.h"
#include "engine/zero/flat_optimizer.h"

namespace zeroproof {

// Stages 1 and 2 (docs/spec/zero.md 2.15 to 2.18a): gradients go through buckets into the slice of
// the rank that owns them. Stage 2 reduces in every backward, stage 1 at the boundary, with
// overlap_comm from within its hooks.
//
// What a backward reduces is pending until its epilogue, so that a failed one can be taken back.
class Stage12Optimizer final : public FlatOptimizer {
 public:
  explicit Stage12Optimizer(ZeroContext& context);

  bool is_zero() const override { return true; }
  bool has_gradient_hook(const ZeroParameter& parameter) const override;
  void add_gradient(ZeroParameter& parameter) override;
  void collect_gradients() override;
  void reduce_gradients() override;
  void backward_epilogue() override;
  bool abandon_gradients() override;
  void visit_state(StateVisitor& visitor) const override;
  void flush_coalesced() override;
  void finalize_unmanaged() override;
  StepOutcome step() override;
  void zero_grad() override;

  void load(const std::vector<FullTensor>& parameters,
            const std::vector<FullTensor>& states) override;

 private:
  bool partitions_gradients() const { return context_.config.stage == 2; }
  bool has_overlap() const { return context_.config.has_overlap_comm(); }

  void add_gradient_slowly(ZeroParameter& parameter);
  bool stays_local() const;
  void set_up_buckets();
  void reduce_sums();
  void gradient_epilogue();
  void commit();
  void drop_gradients();
  void refuse_unused() const;

  // stage12_quirks.cpp
  void commit_as_upstream_offload(FlatGroup& group);
  bool is_upstream_offload() const;
  bool keeps_partition() const;
  bool keeps_offloaded() const;
  bool repeats_unused() const;

  // What a gradient hook has to do, as far as that is the same for all.
  enum class HookWork : std::uint8_t {
    unknown,  // buckets are not set up, or somebody watches
    none,     // gradients are collected at the end
    append,   // IpgBucket::try_append_fast, where it can
    add,
  };
  HookWork known_hook_work() const;

  BucketedGradients gradients_;
  std::vector<bool> is_used_;  // by ParamId: it had a gradient in this window
  bool has_no_observer_;       // no recording, no fault injection
  HookWork hook_work_ = HookWork::unknown;
  std::int64_t window_holds_ = 0;  // complete backwards that are in the window
  bool is_offered_by_hooks_ = partitions_gradients() || has_overlap();
  bool was_boundary_ = false;   // the last completed backward closed the window
  std::int64_t micro_ = -1;     // bucket set-ups since the last step
  std::int64_t backwards_ = 0;  // completed since the last step
};

}  // namespace zeroproof
