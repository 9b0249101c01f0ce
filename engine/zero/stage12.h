#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "engine/zero/flat_optimizer.h"
#include "engine/zero/ipg_bucket.h"

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
  void on_forward_begin(bool ran_epilogue) override;
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

 protected:
  double norm() override;
  Tensor squares() override;
  bool overflows() override;
  void drop_gradients() override;
  void gather_parameters() override;
  void update_parameters(const GradientDivisor& divisor) override;
  Span step_gradient(FlatGroup& group) override;

 private:
  bool partitions_gradients() const { return context_.config.stage == 2; }
  bool has_overlap() const { return context_.config.has_overlap_comm(); }
  IpgBucket& bucket(const ZeroParameter& parameter);

  void add_gradient_slowly(ZeroParameter& parameter);
  void set_up_buckets();
  void add_to_bucket(ZeroParameter& parameter);
  void move_gradient(IpgBucket& target, ZeroParameter& parameter, bool joins);
  void offer_sum(ZeroParameter& parameter);
  void report_not_ready(const ZeroParameter& parameter) const;
  Span append(IpgBucket& bucket, ZeroParameter& parameter, const Tensor& grad);
  void add_local_sum(const ZeroParameter& parameter, Span values);
  void reduce_bucket(IpgBucket& bucket);
  void average(IpgBucket& bucket);
  void all_reduce(Stream& stream, std::span<const IpgBucket::Entry> entries, Span data,
                  DType communication_dtype);
  void reduce_to_owners(Stream& stream, const IpgBucket& bucket);
  void reduce_to_owners(Stream& stream, const IpgBucket& bucket, const IpgBucket::Entry& entry);
  // What the next collective moves: of each entry, from this element of the parameter on.
  void announce(std::span<const IpgBucket::Entry> entries, std::int64_t begin = 0);
  void accumulate_owned_partition(const IpgBucket& bucket);
  void reduce_sums();
  void gradient_epilogue();
  void commit();
  bool gathers_in_parts() const;
  void update_in_parts(FlatGroup& group, const GradientDivisor& divisor);
  void gather_part(const FlatGroup& group, const FlatRange& part);
  void commit_as_upstream_offload(FlatGroup& group);
  void drop_local_sums();
  bool keeps_partition() const;
  bool repeats_unused() const;
  void refuse_twice(const IpgBucket& bucket);
  void refuse_unused() const;

  // What a gradient hook has to do, as far as that is the same for all.
  enum class HookWork : std::uint8_t {
    unknown,  // buckets are not set up, or somebody watches
    none,     // gradients are collected at the end
    append,   // IpgBucket::try_append_fast, where it can
    add,
  };
  HookWork known_hook_work() const;

  struct Progress {             // of one parameter
    bool is_reduced = false;    // in this backward
    bool is_sum_taken = false;  // the bucket got its local sum
    bool has_contributed = false;
  };
  Progress& progress(const ZeroParameter& parameter) {
    return progress_[static_cast<std::size_t>(parameter.id.value)];
  }

  std::deque<IpgBucket> buckets_;      // sorted by the name of their dtype
  std::vector<IpgBucket*> bucket_of_;  // by ParamId; null: frozen, of no trained one's dtype
  std::vector<Progress> progress_;
  std::vector<bool> is_used_;  // by ParamId: it had a gradient in this window
  bool has_no_observer_;       // nobody records, nothing injects faults
  HookWork hook_work_ = HookWork::unknown;
  std::vector<Tensor> boundary_copies_;  // H21: what the step reads, a group each
  std::int64_t window_holds_ = 0;        // complete backwards that are in the window
  bool is_offered_by_hooks_ = partitions_gradients() || has_overlap();
  bool is_ready_ = false;
  bool has_flushed_ = false;    // in this backward
  bool was_boundary_ = false;   // the last completed backward closed the window
  std::int64_t micro_ = -1;     // bucket set-ups since the last step
  std::int64_t backwards_ = 0;  // completed since the last step
};

}  // namespace zeroproof
