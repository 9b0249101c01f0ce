#pragma once

#include <map>
#include <set>
#include <vector>

#include "props/reference/boundary.h"
#include "props/reference/part.h"

namespace zeroproof::reference {

// Which gradients wait for a reduction, and in which bucket: docs/spec/zero/gradients.md 2.16 and
// 2.18, engine.md 2.7 and 2.11 to 2.14. Each gradient that a backward accumulates is reduced once,
// as soon as the rules have it and no earlier.
class GradientsDue final : public Part {
 public:
  explicit GradientsDue(const Surroundings& around);

  void on_event(const HookEvent& event) override;

 private:
  struct Bucket {
    std::vector<std::size_t> held;
    std::int64_t filled = 0;    // elements
    std::int64_t flushed = -1;  // elements of an early flush whose reason is still to come
  };

  bool has_hooks() const;  // every gradient has an event
  DType dtype_of_bucket(const HookEvent& event, std::size_t id) const;
  bool is_held(std::size_t id) const;
  bool is_partitioning() const { return config().stage >= 2; }
  bool is_last_flush() const;
  void see_gradient(const HookEvent& event);
  void see_call(const HookEvent& event);
  void see_return(const HookEvent& event);
  void see_hook(const HookEvent& event);
  void end_hook(const HookEvent& event);
  void see_mark(const HookEvent& event);
  void see_add(const HookEvent& event);
  void see_flush(const HookEvent& event);
  void judge_room(const HookEvent& event, Bucket& bucket, std::size_t next);
  void judge_boundary(const HookEvent& event, std::string_view what);
  void judge_reduced(const HookEvent& event);
  void judge_epilogue(const HookEvent& event);
  bool is_due(std::size_t id) const;
  void collect();
  void drop_backward();
  void drop_window();
  std::string list(const std::set<std::size_t>& ids) const;

  Boundary boundary_;
  std::int64_t capacity_;  // elements of a bucket
  std::map<DType, Bucket> buckets_;
  std::set<std::size_t> loaded_;     // sums that a load may have left
  std::set<std::size_t> undefined_;  // whose last hook got no gradient
  std::set<std::size_t> due_;        // accumulated, and to be in a bucket by the epilogue's end
  std::set<std::size_t> fresh_;      // accumulated in .grad by the running backward
  std::set<std::size_t> local_;      // sums of complete backwards that wait for a boundary
  std::set<std::size_t> joined_;     // those that the running backward has put into its buckets
  int reductions_ = 0;               // of stage 0, in the open epilogue or step
  int epilogues_ = 0;                // since the outermost graph task began
  bool has_reduced_ = false;         // the open epilogue has called its reduction
  bool is_lost_ = false;             // a failed call may have left anything
};

}  // namespace zeroproof::reference
