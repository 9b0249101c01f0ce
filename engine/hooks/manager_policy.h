#pragma once

#include "zeroproof/engine/hooks/hook_policy.h"
#include "zeroproof/internal/engine/hooks/hook_state_manager.h"

namespace zeroproof {

// Where the clients of the manager differ between the upstream versions.
struct ManagerPolicyRules {
  ManagerRules manager;
  bool counts_in_every_hook = false;  // 0.18.5; later once a phase (0.18.7)
  RunningMark running_mark = RunningMark::left_by_exception;
  bool skips_epilogue_above_depth_one = false;  // outside engine.backward: 0.19.6
  PrologueRule prologue = PrologueRule::once_per_forward;
};

// The upstream policies that stand on the hook-state manager: 0.18.5 and its successors.
// The body of a gradient hook is docs/spec/zero.md 1.4.
class ManagerPolicy final : public HookPolicy {
 public:
  explicit ManagerPolicy(ManagerPolicyRules rules);

  const ManagerPolicyRules& rules() const { return rules_; }

  PrologueRule prologue_rule() const override { return rules_.prologue; }
  RunningMark running_mark() const override { return rules_.running_mark; }
  void on_forward_begin(HookHost& host) override;
  void on_forward_end(HookHost&) override {}
  void on_graph_task_begin(HookHost&, GraphTaskId) override {}
  void on_graph_task_end(HookHost&, GraphTaskId, bool) override {}
  void on_prologue(HookHost& host) override;
  bool before_gradient(HookHost& host) override;
  void after_gradient(HookHost& host, bool refresh_count) override;
  void on_final_callback(HookHost& host) override { manager_.run_grad_acc_post_hooks(host); }
  void on_epilogue(HookHost& host) override;
  bool skips_manual_epilogue() const override;
  bool refuses_step() const override;
  bool demands_restart() const override { return rules_.manager.reset_recovers_aborted_backward; }
  void set_epilogue_ran(bool ran) override { manager_.set_epilogue_ran(ran); }
  void set_observer(ManagerObserver* observer) override { manager_.set_observer(observer); }
  BackwardState state() const override { return manager_.state(); }
  void append_state(std::string& bytes) const override;

 private:
  HookStateManager manager_;
  ManagerPolicyRules rules_;
};

}  // namespace zeroproof
