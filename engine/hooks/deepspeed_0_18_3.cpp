// DeepSpeed 0.18.3 and 0.18.4 (#7665): counts once, counts down, runs the epilogue at zero. Its
// whole state is {rem, H, d}: no callback, no flags, no reset at forward.
#include <algorithm>

#include "zeroproof/engine/hooks/policies.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

class CountdownPolicy final : public HookPolicy {
 public:
  CountdownPolicy() { state_.post_hooks = 1; }

  PrologueRule prologue_rule() const override { return PrologueRule::once_per_forward; }
  RunningMark running_mark() const override { return RunningMark::left_by_exception; }
  void on_forward_begin(HookHost&) override {}
  void on_forward_end(HookHost&) override {}
  void on_graph_task_begin(HookHost&, GraphTaskId) override {}
  void on_graph_task_end(HookHost&, GraphTaskId, bool) override {}

  void on_prologue(HookHost&) override {
    notify_call(ManagerMethod::enter_backward);
    ++state_.active_depth;
    notify_return(ManagerMethod::enter_backward);
  }

  // The count is taken before the work, unlike in the later versions.
  bool before_gradient(HookHost& host) override {
    if (state_.remaining_hooks == 0) state_.remaining_hooks = host.count_expected_hooks();
    return false;
  }

  void after_gradient(HookHost& host, bool) override {
    --state_.remaining_hooks;
    if (state_.remaining_hooks == 0 && state_.active_depth > 0) host.run_post_hook();
  }

  void on_final_callback(HookHost&) override {}

  void on_epilogue(HookHost&) override {
    notify_call(ManagerMethod::exit_backward);
    state_.active_depth = std::max(state_.active_depth - 1, 0);
    notify_return(ManagerMethod::exit_backward);
  }

  bool refuses_step() const override { return false; }
  void set_observer(ManagerObserver* observer) override { observer_ = observer; }
  BackwardState state() const override { return state_; }

  void append_state(std::string& bytes) const override { append_bytes(bytes, state_); }

 private:
  void notify_call(ManagerMethod method) {
    if (observer_ != nullptr) observer_->on_manager_call(method, state_, std::nullopt);
  }
  void notify_return(ManagerMethod method) {
    if (observer_ != nullptr) observer_->on_manager_return(method, state_, std::nullopt, false);
  }

  BackwardState state_;
  ManagerObserver* observer_ = nullptr;
};

}  // namespace

std::unique_ptr<HookPolicy> make_deepspeed_0_18_3() {
  return std::make_unique<CountdownPolicy>();
}

}  // namespace zeroproof
