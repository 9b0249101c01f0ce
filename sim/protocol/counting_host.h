#pragma once

#include <cstdint>
#include <vector>

#include "zeroproof/engine/hooks/hook_policy.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// The nodes one graph task will execute, after a call as the autograd engine's own predicate is.
class ExecutionSet {
 public:
  explicit ExecutionSet(std::size_t nodes) : executes_(nodes, true) {}
  [[gnu::noinline]] bool will_execute(std::size_t node) const { return executes_[node]; }
  std::size_t size() const { return executes_.size(); }

 private:
  std::vector<bool> executes_;
};

// A host that does the work a real one would do for a policy, and counts it: an expected-set
// query looks every parameter up in the set of nodes the graph task will execute. Events of the
// hooks go to the sink.
class CountingHost final : public HookHost {
 public:
  // The sink must outlive the host.
  CountingHost(std::size_t params, EventSink& sink) : nodes_(params), sink_(sink) {
    post_acc_.kind = EventKind::param_post_acc;
  }

  void attach(HookPolicy& policy) {
    policy_ = &policy;
    tracker_.set_running_mark(policy.running_mark());
  }

  // One forward and one manual backward: prologue, one hook a parameter, final callback.
  void run_backward() {
    policy_->on_forward_begin(*this);
    tracker_.begin_forward();
    tracker_.end_forward();
    policy_->on_forward_end(*this);
    task_ = GraphTaskId{next_task_++};
    tracker_.begin_task(task_);
    policy_->on_graph_task_begin(*this, task_);
    tracker_.run_prologue();
    policy_->on_prologue(*this);
    const auto params = static_cast<std::int32_t>(nodes_.size());
    for (std::int32_t param = 0; param < params; ++param) {
      post_acc_.param = NameId{param};
      ++post_acc_.lc;
      sink_.on_event(post_acc_);
      const bool refresh = policy_->before_gradient(*this);
      policy_->after_gradient(*this, refresh);
    }
    for (; queued_callbacks_ > 0; --queued_callbacks_) policy_->on_final_callback(*this);
    const GraphTaskId ended = task_;
    task_ = GraphTaskId::none();
    policy_->on_graph_task_end(*this, ended, false);
    tracker_.end_task(ended, false);
  }

  std::uint64_t membership_queries() const { return membership_queries_; }
  std::uint64_t expected_set_queries() const { return expected_set_queries_; }
  std::uint64_t epilogues() const { return epilogues_; }

  bool has_callback_api() const override { return true; }
  GraphTaskId current_graph_task() const override { return task_; }
  void queue_callback() override { ++queued_callbacks_; }

  std::int32_t count_expected_hooks() override {
    ++expected_set_queries_;
    std::int32_t expected = 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      expected += nodes_.will_execute(node) ? 1 : 0;
    }
    membership_queries_ += nodes_.size();
    return expected;
  }

  void run_post_hook() override {
    ++epilogues_;
    policy_->on_epilogue(*this);
  }
  void abandon_gradients() override {}

 private:
  ExecutionSet nodes_;  // one a parameter
  EventSink& sink_;
  HookPolicy* policy_ = nullptr;
  HookEvent post_acc_;
  GraphTaskId task_;
  std::int64_t next_task_ = 0;
  int queued_callbacks_ = 0;
  std::uint64_t membership_queries_ = 0;
  std::uint64_t expected_set_queries_ = 0;
  std::uint64_t epilogues_ = 0;
};

}  // namespace zeroproof
