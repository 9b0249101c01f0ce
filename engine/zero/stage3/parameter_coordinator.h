#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/zero/stage3/fetch_trace.h"
#include "engine/zero/stage3/retained_graphs.h"

namespace zeroproof {

// Fetches the parameters of modules before they run and releases them afterwards, forward and
// backward, and gathers ahead along the recorded order (docs/spec/zero.md 3.3 to 3.6, 3.12).
//
// A use is one direction of one call of a module, so that a recompute inside a module's backward
// does not release what that backward still needs. Upstream knows the module alone.
class ParameterCoordinator {
 public:
  // All must outlive it.
  ParameterCoordinator(ZeroContext& context, ParameterGatherer& gatherer);

  // The root's forward begins (docs/spec/zero.md 3.5). fetch_order_differs_between_ranks where
  // ranks recorded different orders.
  void reset_step();
  // Follows or records the order; what leaves it invalidates it.
  void visit(Zero3Module& module);
  void fetch(const ModuleCall& call, bool is_forward);
  void release(const ModuleCall& call, bool is_forward);
  // A forward that did not come to its end needs no parameter any more.
  void abandon_forward(const ModuleCall& call);

  // What backward hooks have not released: of every module whose backward began
  // (docs/spec/zero.md 3.4). With every engine epilogue; `is_reported` for the end of a backward
  // that has none.
  void release_backward_leftovers(bool is_reported = true);
  // Whatever is whole without a use: gathered ahead for something that did not come. Persistent
  // and external ones stay. Upstream has no such thing.
  void release_all_unused();
  // Everything, persistent and external ones too; parameter_not_released when one is still there.
  void release_and_reset_all();
  void invalidate_trace();
  // The module uses it from now on (docs/spec/zero.md 3.8). A complete order does not know of that.
  void add_external(Zero3Module& module, PartitionedParameter& parameter);

  // A graph task has ended. What one that keeps its graph releases is kept for the next
  // (docs/spec/zero.md 3.11); the outermost one's end settles what is left of that.
  void end_task(bool raised);
  // For the calls that hold: they report when their part of a graph is gone.
  const std::shared_ptr<RetainedGraphs>& retained_graphs() const { return retained_; }

  const FetchTrace& trace() const { return trace_; }
  bool has_active_backward() const { return !active_.empty(); }

 private:
  // A module between the fetch and the release of its backward, with what recomputes inside it
  // have left to it.
  struct ActiveBackward {
    ModuleCall call;
    bool keeps_graph = false;
    ParameterList recomputed = {};
  };

  ParameterUse use_of(const ModuleCall& call, bool is_forward) const;
  void check_same_on_all_ranks(const std::vector<double>& values, const char* what);
  void broadcast_check(const std::vector<double>& values, const char* what);
  void activate(const ModuleCall& call);
  bool keeps_graph() const;
  std::vector<ActiveBackward>::iterator find_active(const ModuleCall& call);
  void attribute_to_recompute(PartitionedParameter& parameter);
  void prefetch(bool is_forward);
  bool is_recomputing() const;
  void gather_async(const ParameterList& parameters, bool is_forward);
  std::int64_t live_elements() const;

  std::set<ParamId> releasable(const Zero3Module& module);
  std::set<ParamId> releasable_by_trace(const Zero3Module& module) const;
  void drop(const ActiveBackward& active, const std::set<ParamId>& candidates);
  void release_unused(PartitionedParameter& parameter);
  void report(EventKind kind, const ModuleCall& call, bool is_forward) const;
  void report_external(const Zero3Module& module, const PartitionedParameter& parameter) const;
  bool knows_modules_alone() const { return context_.upstream.all; }
  bool has_memo() const { return context_.upstream.release_memo_forever; }

  ZeroContext& context_;
  ParameterGatherer& gatherer_;
  FetchTrace trace_;
  std::shared_ptr<RetainedGraphs> retained_;
  std::set<std::int64_t> passed_;       // graphs that the open graph tasks did not keep
  std::vector<ActiveBackward> active_;  // by their first fetch
  std::map<std::pair<std::int32_t, std::int64_t>, std::set<ParamId>> memo_;  // H17
  std::int64_t counted_live_ = 0;  // upstream's count of live elements
};

}  // namespace zeroproof
