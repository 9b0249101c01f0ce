#pragma once

#include <memory>
#include <string>
#include <utility>

#include "zeroproof/engine/hooks/hook_policy.h"

namespace zeroproof {

// Hands every call on to another policy: a policy of one's own overrides what it does otherwise.
// EngineOptions::decorate_policy puts it around the policy of an engine.
class PolicyDecorator : public HookPolicy {
 public:
  explicit PolicyDecorator(std::unique_ptr<HookPolicy> inner) : inner_(std::move(inner)) {}

  PrologueRule prologue_rule() const override { return inner_->prologue_rule(); }
  RunningMark running_mark() const override { return inner_->running_mark(); }
  void on_forward_begin(HookHost& host) override { inner_->on_forward_begin(host); }
  void on_forward_end(HookHost& host) override { inner_->on_forward_end(host); }
  void on_graph_task_begin(HookHost& host, GraphTaskId task) override {
    inner_->on_graph_task_begin(host, task);
  }
  void on_graph_task_end(HookHost& host, GraphTaskId task, bool raised) override {
    inner_->on_graph_task_end(host, task, raised);
  }
  void on_prologue(HookHost& host) override { inner_->on_prologue(host); }
  bool before_gradient(HookHost& host) override { return inner_->before_gradient(host); }
  void after_gradient(HookHost& host, bool refresh_count) override {
    inner_->after_gradient(host, refresh_count);
  }
  void on_final_callback(HookHost& host) override { inner_->on_final_callback(host); }
  void on_epilogue(HookHost& host) override { inner_->on_epilogue(host); }
  void set_epilogue_ran(bool ran) override { inner_->set_epilogue_ran(ran); }
  void on_zero_grad() override { inner_->on_zero_grad(); }
  void on_backward_end(HookHost& host, bool raised) override {
    inner_->on_backward_end(host, raised);
  }
  bool skips_manual_epilogue() const override { return inner_->skips_manual_epilogue(); }
  bool refuses_step() const override { return inner_->refuses_step(); }
  bool demands_restart() const override { return inner_->demands_restart(); }
  void set_observer(ManagerObserver* observer) override { inner_->set_observer(observer); }
  BackwardState state() const override { return inner_->state(); }
  void append_state(std::string& bytes) const override { inner_->append_state(bytes); }

 protected:
  HookPolicy& inner() const { return *inner_; }

 private:
  std::unique_ptr<HookPolicy> inner_;
};

}  // namespace zeroproof
