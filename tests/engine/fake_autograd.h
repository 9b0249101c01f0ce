#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof::testing {

class FakeAutograd;

// One epilogue that a policy asked for or that engine.backward ran.
struct FakeEpilogue {
  bool is_automatic = false;
  std::int64_t task = -1;  // the graph task that was current
};

// An engine that keeps its own books next to the policy under test.
class FakeEngine final : public HookHost {
 public:
  FakeEngine(std::string_view policy, FakeAutograd& autograd)
      : policy_((*find_policy(policy))->make()), autograd_(autograd) {
    tracker_.set_running_mark(policy_->running_mark());
  }

  HookPolicy& policy() { return *policy_; }

  void forward_begin() {
    policy_->on_forward_begin(*this);
    tracker_.begin_forward();
  }
  void forward_end() {
    tracker_.end_forward();
    policy_->on_forward_end(*this);
  }
  void task_begin(GraphTaskId task) {
    tracker_.begin_task(task);
    policy_->on_graph_task_begin(*this, task);
  }
  void task_end(GraphTaskId task, bool raised) {
    policy_->on_graph_task_end(*this, task, raised);
    tracker_.end_task(task, raised);
  }
  void prologue() {
    tracker_.run_prologue();
    policy_->on_prologue(*this);
  }
  void gradient() {
    const bool refresh_count = policy_->before_gradient(*this);
    ++unreduced;
    policy_->after_gradient(*this, refresh_count);
  }
  void epilogue(bool is_automatic) {
    epilogues.push_back({is_automatic, current_graph_task().value});
    unreduced = 0;
    policy_->on_epilogue(*this);
  }
  void backward_begin() {
    is_running = true;
    tracker_.begin_backward();
  }
  // engine.backward: the explicit epilogue follows a backward that did not raise.
  void backward_end(bool raised) {
    if (!raised) epilogue(false);
    tracker_.end_backward(raised);
    policy_->on_backward_end(*this, raised);
    is_running = false;
  }

  std::vector<FakeEpilogue> epilogues;
  std::int32_t unreduced = 0;               // gradients since the last epilogue or abandonment
  std::int32_t abandoned = 0;               // times that the policy reported an abandonment
  std::int32_t post_hooks_in_backward = 0;  // asked for while engine.backward ran
  bool is_running = false;
  bool next_post_hook_raises = false;

  bool has_callback_api() const override { return true; }
  GraphTaskId current_graph_task() const override;
  void queue_callback() override;
  std::int32_t count_expected_hooks() override { return 0; }
  void run_post_hook() override;
  void abandon_gradients() override {
    ++abandoned;
    unreduced = 0;
  }

 private:
  std::unique_ptr<HookPolicy> policy_;
  FakeAutograd& autograd_;
};

struct FakeException {};

// Graph tasks of one thread (rules C1, C2, C6): a callback goes to the innermost task, callbacks
// run when its nodes are done, and not when it raised.
class FakeAutograd {
 public:
  FakeEngine& add_engine(std::string_view policy = "exact") {
    engines_.push_back(std::make_unique<FakeEngine>(policy, *this));
    return *engines_.back();
  }

  std::int64_t begin() {
    tasks_.push_back({next_task_++, {}});
    for (const auto& engine : engines_) engine->task_begin(GraphTaskId{tasks_.back().id});
    return tasks_.back().id;
  }

  // Runs the final callbacks, unless the task's nodes raised. True when the task ended well.
  bool end(bool raised = false) {
    if (!raised) raised = !run_callbacks();
    const GraphTaskId ended{tasks_.back().id};
    tasks_.pop_back();
    for (const auto& engine : engines_) engine->task_end(ended, raised);
    return !raised;
  }

  const std::vector<std::unique_ptr<FakeEngine>>& engines() const { return engines_; }
  std::size_t open_tasks() const { return tasks_.size(); }
  GraphTaskId innermost() const {
    return tasks_.empty() ? GraphTaskId::none() : GraphTaskId{tasks_.back().id};
  }
  GraphTaskId root() const {
    return tasks_.empty() ? GraphTaskId::none() : GraphTaskId{tasks_.front().id};
  }

  void queue(FakeEngine& engine) { tasks_.at(tasks_.size() - 1).callbacks.push_back(&engine); }

 private:
  struct Task {
    std::int64_t id = 0;
    std::vector<FakeEngine*> callbacks;
  };

  bool run_callbacks() {
    for (std::size_t at = 0; at < tasks_.back().callbacks.size(); ++at) {
      FakeEngine& engine = *tasks_.back().callbacks[at];
      try {
        engine.policy().on_final_callback(engine);
      } catch (const FakeException&) {
        return false;
      }
    }
    return true;
  }

  std::vector<std::unique_ptr<FakeEngine>> engines_;
  std::vector<Task> tasks_;
  std::int64_t next_task_ = 0;
};

inline GraphTaskId FakeEngine::current_graph_task() const {
  return autograd_.innermost();
}
inline void FakeEngine::queue_callback() {
  autograd_.queue(*this);
}
inline void FakeEngine::run_post_hook() {
  post_hooks_in_backward += is_running ? 1 : 0;
  if (std::exchange(next_post_hook_raises, false)) throw FakeException{};
  if (!tracker_.is_backward_marked()) epilogue(true);
}

}  // namespace zeroproof::testing
