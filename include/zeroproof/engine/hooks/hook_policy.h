#pragma once

#include <string>
#include <string_view>

#include "zeroproof/engine/hooks/hook_host.h"
#include "zeroproof/internal/engine/hooks/hook_state_manager.h"
#include "zeroproof/model/backward_state.h"
#include "zeroproof/model/ids.h"

namespace zeroproof {

// How often an output hook may run the prologue (docs/spec/zero.md 2.4).
enum class PrologueRule {
  once_per_forward,     // upstream: the flag is never re-armed
  once_per_graph_task,  // each backward over a retained graph gets its own prologue
};

// Decides when "all gradients of this backward are in", so that the epilogue can run. The engine
// reports every event below, in the order in which they happen on the backward's thread.
//
// One policy object belongs to one engine. Not thread-safe. What is open, a policy reads from the
// host's tracker; it keeps only its own decisions. They are plain data: `append_state` gives all of
// them, and two policies with equal bytes, of which the trackers have equal bytes, behave equally
// from there on.
// Methods let exceptions of the host pass and leave the state as upstream would.
class HookPolicy {
 public:
  virtual ~HookPolicy() = default;

  virtual PrologueRule prologue_rule() const = 0;
  // The host hands it to its tracker.
  virtual RunningMark running_mark() const { return RunningMark::restored; }

  // engine.forward, before and after the module runs.
  virtual void on_forward_begin(HookHost& host) = 0;
  virtual void on_forward_end(HookHost& host) = 0;

  // A graph task started (it is current) or ended (its parent, if any, is current).
  // `raised`: the task ended by an exception, so not one of its final callbacks ran to the end.
  virtual void on_graph_task_begin(HookHost& host, GraphTaskId task) = 0;
  virtual void on_graph_task_end(HookHost& host, GraphTaskId task, bool raised) = 0;

  // The first output hook of a backward ran (docs/spec/zero.md 2.5), inside the current task.
  virtual void on_prologue(HookHost& host) = 0;

  // Around the work of one gradient hook (1.4). `after_gradient` gets what `before_gradient`
  // returned: whether the expected count must be asked for again.
  virtual bool before_gradient(HookHost& host) = 0;
  virtual void after_gradient(HookHost& host, bool refresh_count) = 0;
  // Whether both would have no effect now: the hook path then leaves them out.
  bool can_skip_policy(GraphTaskId task) const { return task == settled_task_; }

  // A callback queued by this policy runs; its task is current.
  virtual void on_final_callback(HookHost& host) = 0;

  // The epilogue ran (docs/spec/zero.md 2.6), automatic or explicit: everything added so far is
  // reduced.
  virtual void on_epilogue(HookHost& host) = 0;
  // Upstream's `epilogue_ran_this_backward` as its optimizers write it (docs/spec/zero.md 2.18):
  // set where the epilogue of the partitions ran, cleared by stage 3's step and zero_grad.
  virtual void set_epilogue_ran(bool /*ran*/) {}

  // zero_grad: no gradient that was added so far is left for an epilogue to reduce. Upstream's
  // managers do not hear it.
  virtual void on_zero_grad() {}

  // engine.backward is left. While its mark is set (BackwardTracker::is_backward_marked), the
  // engine's post hook has no effect and an explicit epilogue follows.
  virtual void on_backward_end(HookHost& /*host*/, bool /*raised*/) {}
  // Outside engine.backward the engine's post hook returns at once and runs no epilogue (0.19.6).
  virtual bool skips_manual_epilogue() const { return false; }

  // optimizer.step must refuse: a backward is incomplete (the branch of #8245).
  virtual bool refuses_step() const = 0;
  // Gradients of an aborted backward that cannot be taken back end the run (the same branch).
  virtual bool demands_restart() const { return false; }

  // Sees the manager's methods where the policy has them. Null for none; must outlive the calls.
  virtual void set_observer(ManagerObserver* observer) = 0;

  // The upstream counters, or the closest reading of them for a policy that has others.
  virtual BackwardState state() const = 0;

  virtual void append_state(std::string& bytes) const = 0;

 protected:
  static constexpr GraphTaskId kNotSettled{-2};  // no task, not even none
  GraphTaskId settled_task_ = kNotSettled;
};

}  // namespace zeroproof
