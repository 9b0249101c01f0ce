#include "zeroproof/internal/engine/hooks/hook_state_manager.h"

#include <algorithm>
#include <array>
#include <exception>

namespace zeroproof {
namespace {

constexpr std::array kMethodNames = {
    std::string_view("enter_backward"),
    std::string_view("exit_backward"),
    std::string_view("reset_for_new_step"),
    std::string_view("should_refresh_expected_hook_count"),
    std::string_view("reenter_backward_if_needed"),
    std::string_view("queue_post_backward_callback"),
    std::string_view("update_hook_state_and_maybe_run_epilogue"),
    std::string_view("run_grad_acc_post_hooks"),
};

}  // namespace

std::string_view manager_method_name(ManagerMethod method) {
  return kMethodNames[static_cast<std::size_t>(method)];
}

std::optional<ManagerMethod> manager_method_of(std::string_view name) {
  const auto at = std::find(kMethodNames.begin(), kMethodNames.end(), name);
  if (at == kMethodNames.end()) return std::nullopt;
  return static_cast<ManagerMethod>(at - kMethodNames.begin());
}

class HookStateManager::Call {
 public:
  Call(HookStateManager& manager, ManagerMethod method,
       std::optional<std::int64_t> argument = std::nullopt)
      : manager_(manager), method_(method) {
    if (manager_.observer_ == nullptr) return;
    uncaught_ = std::uncaught_exceptions();
    manager_.observer_->on_manager_call(method_, manager_.state_, argument);
  }

  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  ~Call() noexcept(false) {
    if (manager_.observer_ == nullptr) return;
    const bool raised = std::uncaught_exceptions() > uncaught_;
    manager_.observer_->on_manager_return(method_, manager_.state_, returned_, raised);
  }

  bool returns(bool value) {
    returned_ = value;
    return value;
  }

 private:
  HookStateManager& manager_;
  ManagerMethod method_;
  std::optional<bool> returned_;
  int uncaught_ = 0;
};

// rem = 0, d = 0 and seen: a phase ended and its epilogue already ran.
bool HookStateManager::is_between_phases() const {
  return state_.remaining_hooks == 0 && state_.active_depth == 0 &&
         state_.is_backward_seen_this_step;
}

void HookStateManager::enter_backward() {
  const Call call(*this, ManagerMethod::enter_backward);
  if (rules_.first_enter_resets_counters && state_.active_depth == 0 &&
      !state_.is_backward_seen_this_step) {
    state_.hooks_fired = 0;
    state_.max_expected_hooks = 0;
    state_.remaining_hooks = 0;
    state_.is_callback_queued = false;
    state_.callback_graph_task = GraphTaskId::none();
  }
  ++state_.active_depth;
  state_.is_backward_seen_this_step = true;
}

void HookStateManager::exit_backward() {
  const Call call(*this, ManagerMethod::exit_backward);
  state_.active_depth = std::max(state_.active_depth - 1, 0);
}

std::optional<bool> HookStateManager::reset_for_new_step() {
  Call call(*this, ManagerMethod::reset_for_new_step);
  const bool was_incomplete = state_.active_depth > 0;
  state_.is_backward_seen_this_step = false;
  state_.hooks_fired = 0;
  state_.max_expected_hooks = 0;
  state_.ran_epilogue_this_backward = false;
  state_.is_callback_queued = false;
  state_.callback_graph_task = GraphTaskId::none();
  if (!rules_.reset_recovers_aborted_backward) return std::nullopt;
  state_.remaining_hooks = 0;
  state_.active_depth = 0;
  return call.returns(was_incomplete);
}

bool HookStateManager::should_refresh_expected_hook_count() {
  Call call(*this, ManagerMethod::should_refresh_expected_hook_count);
  return call.returns(state_.hooks_fired == 0 || is_between_phases());
}

void HookStateManager::reenter_backward_if_needed() {
  const Call call(*this, ManagerMethod::reenter_backward_if_needed);
  if (is_between_phases()) enter_backward();
}

bool HookStateManager::queue_post_backward_callback(HookHost& host) {
  Call call(*this, ManagerMethod::queue_post_backward_callback);
  if (state_.is_callback_queued) return call.returns(true);
  if (state_.active_depth == 0) return call.returns(false);
  if (!host.has_callback_api()) return call.returns(false);
  const GraphTaskId task = host.current_graph_task();
  if (task.is_none()) return call.returns(false);
  host.queue_callback();
  state_.is_callback_queued = true;
  state_.callback_graph_task = task;
  return call.returns(true);
}

void HookStateManager::update_hook_state_and_maybe_run_epilogue(HookHost& host,
                                                                std::int32_t expected_hooks) {
  const Call call(*this, ManagerMethod::update_hook_state_and_maybe_run_epilogue, expected_hooks);
  ++state_.hooks_fired;
  state_.max_expected_hooks = std::max(state_.max_expected_hooks, expected_hooks);
  const bool is_queued = queue_post_backward_callback(host);
  if (is_queued) {
    state_.remaining_hooks = std::max(state_.max_expected_hooks - state_.hooks_fired, 0);
  } else if (state_.hooks_fired >= state_.max_expected_hooks) {
    state_.remaining_hooks = 0;
    run_grad_acc_post_hooks(host);
  } else {
    state_.remaining_hooks = state_.max_expected_hooks - state_.hooks_fired;
  }
}

void HookStateManager::run_grad_acc_post_hooks(HookHost& host) {
  const Call call(*this, ManagerMethod::run_grad_acc_post_hooks);
  if (state_.active_depth == 0) return;
  for (std::int32_t hook = 0; hook < state_.post_hooks; ++hook) host.run_post_hook();
}

}  // namespace zeroproof
