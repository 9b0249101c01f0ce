#include "engine/hooks/manager_policy.h"

#include "zeroproof/model/state_bytes.h"

namespace zeroproof {

ManagerPolicy::ManagerPolicy(ManagerPolicyRules rules) : manager_(rules.manager), rules_(rules) {
  manager_.register_post_hook();
}

void ManagerPolicy::on_forward_begin(HookHost& host) {
  const bool was_incomplete = manager_.reset_for_new_step().value_or(false);
  if (was_incomplete) host.abandon_gradients();
}

void ManagerPolicy::on_prologue(HookHost& host) {
  manager_.enter_backward();
  manager_.queue_post_backward_callback(host);
}

// The predicate must be read before the re-entry, which changes it (P9).
bool ManagerPolicy::before_gradient(HookHost&) {
  const bool refresh_count =
      rules_.counts_in_every_hook || manager_.should_refresh_expected_hook_count();
  manager_.reenter_backward_if_needed();
  return refresh_count;
}

void ManagerPolicy::after_gradient(HookHost& host, bool refresh_count) {
  const std::int32_t expected =
      refresh_count ? host.count_expected_hooks() : manager_.state().max_expected_hooks;
  manager_.update_hook_state_and_maybe_run_epilogue(host, expected);
}

void ManagerPolicy::on_epilogue(HookHost&) {
  manager_.exit_backward();
}

bool ManagerPolicy::skips_manual_epilogue() const {
  return rules_.skips_epilogue_above_depth_one && manager_.state().active_depth > 1;
}

bool ManagerPolicy::refuses_step() const {
  return rules_.manager.reset_recovers_aborted_backward && manager_.state().active_depth > 0;
}

void ManagerPolicy::append_state(std::string& bytes) const {
  append_bytes(bytes, manager_.state());
}

}  // namespace zeroproof
