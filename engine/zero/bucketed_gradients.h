#pragma once

#include <deque>
#include <vector>

#include "engine/zero/bucket_reducer.h"
#include "engine/zero/local_sums.h"
#include "engine/zero/state_visitor.h"

namespace zeroproof {

// The gradients of the running backward in stages 1 and 2, on their way from .grad through buckets
// to what their groups have pending (docs/spec/zero.md 2.16, 2.17). When they go is their stage's
// to say.
class BucketedGradients {
 public:
  // All must outlive it.
  BucketedGradients(ZeroContext& context, const FlatSlots& slots, LocalSums& sums);

  struct Progress {             // of one parameter in this backward
    bool is_reduced = false;    // some of it
    bool is_sum_taken = false;  // the bucket got its local sum
    bool has_contributed = false;
  };
  Progress& progress(const ZeroParameter& parameter) {
    return progress_[static_cast<std::size_t>(parameter.id.value)];
  }

  // Before the first gradient of a backward: the buckets have their memory.
  void set_up();
  bool is_ready() const { return is_ready_; }

  // The bucket of the parameter's communication dtype.
  IpgBucket& bucket(const ZeroParameter& parameter) {
    return *bucket_of_[static_cast<std::size_t>(parameter.id.value)];
  }
  // .grad moves to its bucket, which is reduced before where it has no room. In stage 1 the local
  // sum comes with it.
  void add(ZeroParameter& parameter);
  // The local sum moves there.
  void add_sum(ZeroParameter& parameter);
  // What waits in buckets is reduced, and the computation may use all that was.
  void flush();
  bool has_flushed() const { return has_flushed_; }  // a bucket, in this backward

  // The backward is complete, or has failed: then what waits is dropped.
  void finish();
  void abandon();

  void visit_state(StateVisitor& visitor) const;

 private:
  bool partitions_gradients() const { return context_.config.stage == 2; }
  bool has_overlap() const { return context_.config.has_overlap_comm(); }

  void move_gradient(IpgBucket& target, ZeroParameter& parameter, bool joins);
  Span append(IpgBucket& target, ZeroParameter& parameter, const Tensor& grad);
  void add_local_sum(const ZeroParameter& parameter, Span values);
  void report_not_ready(const ZeroParameter& parameter) const;
  void reduce_bucket(IpgBucket& target);
  void accumulate_owned_partition(const IpgBucket& target);
  void refuse_twice(const IpgBucket& target);

  ZeroContext& context_;
  const FlatSlots& slots_;
  LocalSums& sums_;
  BucketReducer reducer_;
  std::deque<IpgBucket> buckets_;      // sorted by the name of their dtype
  std::vector<IpgBucket*> bucket_of_;  // by ParamId; null: frozen, of no trained one's dtype
  std::vector<Progress> progress_;     // by ParamId
  bool is_ready_ = false;
  bool has_flushed_ = false;
};

}  // namespace zeroproof
