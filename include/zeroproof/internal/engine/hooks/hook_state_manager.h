#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "zeroproof/engine/hooks/hook_host.h"
#include "zeroproof/model/backward_state.h"

namespace zeroproof {

// The methods of upstream's manager, in the words of its recorded calls.
enum class ManagerMethod {
  enter_backward,
  exit_backward,
  reset_for_new_step,
  should_refresh_expected_hook_count,
  reenter_backward_if_needed,
  queue_post_backward_callback,
  update_hook_state_and_maybe_run_epilogue,
  run_grad_acc_post_hooks,
};

std::string_view manager_method_name(ManagerMethod method);
std::optional<ManagerMethod> manager_method_of(std::string_view name);

// Sees every method of a manager, nested ones included, with the state before and after.
class ManagerObserver {
 public:
  virtual ~ManagerObserver() = default;
  virtual void on_manager_call(ManagerMethod method, const BackwardState& before,
                               std::optional<std::int64_t> argument) = 0;
  virtual void on_manager_return(ManagerMethod method, const BackwardState& after,
                                 std::optional<bool> returned, bool raised) = 0;
};

// Where the upstream versions of the manager differ (docs/spec/zero.md 1.6).
struct ManagerRules {
  bool first_enter_resets_counters = false;  // 0.18.7
  // The branch of #8245: reset clears d and rem and reports it.
  bool reset_recovers_aborted_backward = false;
};

// Upstream's hook-state manager as an exact state machine (docs/spec/zero.md 1.2 and 1.3).
// Not thread-safe. An exception from the host leaves the state as upstream's would be.
class HookStateManager {
 public:
  explicit HookStateManager(ManagerRules rules) : rules_(rules) {}

  // Null for none. Must outlive the manager's calls.
  void set_observer(ManagerObserver* observer) { observer_ = observer; }

  const BackwardState& state() const { return state_; }

  // For a recording that begins in the middle of a run.
  void adopt(const BackwardState& state) { state_ = state; }

  // The optimizer's side of `epi`: its backward epilogue sets it; stage 3's step and zero_grad
  // clear it (docs/spec/zero.md 2.18).
  void set_epilogue_ran(bool ran) { state_.ran_epilogue_this_backward = ran; }

  void register_post_hook() { ++state_.post_hooks; }
  void unregister_all() { state_.post_hooks = 0; }

  void enter_backward();
  void exit_backward();

  // Has a value only under `reset_recovers_aborted_backward`: whether a backward was incomplete.
  std::optional<bool> reset_for_new_step();

  bool should_refresh_expected_hook_count();
  void reenter_backward_if_needed();
  bool queue_post_backward_callback(HookHost& host);
  void update_hook_state_and_maybe_run_epilogue(HookHost& host, std::int32_t expected_hooks);
  void run_grad_acc_post_hooks(HookHost& host);

 private:
  class Call;  // informs the observer, also when an exception passes

  bool is_between_phases() const;

  BackwardState state_;
  ManagerRules rules_;
  ManagerObserver* observer_ = nullptr;
};

}  // namespace zeroproof
