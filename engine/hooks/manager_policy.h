#pragma once

#include "engine/hooks/hook_policy.h"
#include "engine/hooks/hook_state_manager.h"

namespace zeroproof {

// Where the clients of the manager differ between the upstream versions.
struct ManagerPolicyRules {
  ManagerRules manager;
  bool counts_in_every_hook = false;              // #7780; later once a phase (#7886)
  bool restores_running_after_exception = false;  // #8245, #8135
  PrologueRule prologue = PrologueRule::once_per_forward;
};

// The upstream policies that stand on the hook-state manager: #7780 and its successors.
// The body of a gradient hook is zero_semantics 1.4.
class ManagerPolicy final : public HookPolicy {
 public:
  explicit ManagerPolicy(ManagerPolicyRules rules);

  const ManagerPolicyRules& rules() const { return rules_; }

  PrologueRule prologue_rule() const override { return rules_.prologue; }
  void on_forward_begin(HookHost& host) override;
  void on_forward_end(HookHost&) override {}
  void on_graph_task_begin(HookHost&, GraphTaskId) override {}
  void on_graph_task_end(HookHost&, GraphTaskId, bool) override {}
  void on_prologue(HookHost& host) override;
  bool before_gradient(HookHost& host) override;
  void after_gradient(HookHost& host, bool refresh_count) override;
  void on_final_callback(HookHost& host) override { manager_.run_grad_acc_post_hooks(host); }
  void on_epilogue(HookHost& host) override;
  void on_backward_begin(HookHost& host) override;
  void on_backward_end(HookHost& host, bool raised) override;
  bool is_backward_running() const override { return is_running_; }
  bool refuses_step() const override;
  void set_observer(ManagerObserver* observer) override { manager_.set_observer(observer); }
  BackwardState state() const override { return manager_.state(); }
  void append_state(std::string& bytes) const override;

 private:
  HookStateManager manager_;
  ManagerPolicyRules rules_;
  bool is_running_ = false;
};

}  // namespace zeroproof
