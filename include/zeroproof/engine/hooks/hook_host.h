#pragma once

#include <cstdint>

#include "zeroproof/internal/engine/hooks/backward_tracker.h"
#include "zeroproof/model/ids.h"

namespace zeroproof {

// What a hook policy may ask of the autograd and the engine around it. One host per engine;
// calls arrive on the thread that runs the backward. Must outlive the policy's calls.
class HookHost {
 public:
  virtual ~HookHost() = default;

  // What is open around the running backward. The host feeds it; one that stands before another
  // host gives that host's.
  virtual const BackwardTracker& tracker() const { return tracker_; }

  // queue_callback and current_graph_task exist (the three internal APIs of docs/spec/zero.md 2.1).
  virtual bool has_callback_api() const = 0;

  // The innermost running graph task (rule G1), none outside any task or without the API.
  virtual GraphTaskId current_graph_task() const = 0;

  // Appends a final callback to the current task (rule C1). When it runs, the host calls
  // HookPolicy::on_final_callback with that task current.
  virtual void queue_callback() = 0;

  // One expected-set query: how many gradient hooks the current task will fire (1.4).
  virtual std::int32_t count_expected_hooks() = 0;

  // Runs the engine's post hook (docs/spec/zero.md 2.8), which runs the epilogue. Throws what the
  // user would see, e.g. backward_without_loss_scaling; policies let it pass.
  virtual void run_post_hook() = 0;

  // The gradients added since the last epilogue belong to a backward that failed: drop them and
  // report it. Policies that do not recover never call it.
  virtual void abandon_gradients() = 0;

 protected:
  BackwardTracker tracker_;  // with the running mark of the host's policy
};

}  // namespace zeroproof
