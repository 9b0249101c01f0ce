// exact: ours. It decides by graph task, never by counting.
//
// An epilogue is owed by the graph task in which a prologue ran. Hooks that fire outside any such
// task (a loss term that bypasses the engine's output) make the outermost task owe one instead;
// hooks of a backward started inside a forward (a tiled loss) owe no epilogue, because the backward
// of that forward will come. A task that owes gets one final callback. A nested task that ends
// with unreduced work hands the debt to its parent. A task that fails owes no epilogue, and
// when the outermost task fails, what was added since the last epilogue is abandoned.
//
// Two quirks are about callbacks. H20: a forward makes open tasks forget theirs. H23: a forward
// alone makes the engine forget that it has queued one, so a second backward queues none.
#include <algorithm>
#include <exception>
#include <vector>

#include "model/check.h"
#include "zeroproof/engine/hooks/policies.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

// What was decided about one open graph task.
struct TaskDecision {
  GraphTaskId id;
  bool owes_epilogue = false;
  bool has_worked = false;         // gradients came in it, not in a forward ahead of it
  bool has_failed_inside = false;  // a task in it that may have left work
  bool is_callback_queued = false;
};

class ExactPolicy final : public HookPolicy {
 public:
  explicit ExactPolicy(const Quirks& quirks)
      : forgets_at_forward_(quirks.has(Quirk::h20_any_forward_resets_step)),
        forgets_at_forward_alone_(quirks.has(Quirk::h23_stale_callback_flag_retained)) {}

  PrologueRule prologue_rule() const override { return PrologueRule::once_per_graph_task; }

  // There is no state left to reset; observers still see where upstream's managers do it.
  void on_forward_begin(HookHost&) override {
    notify_call(ManagerMethod::reset_for_new_step);
    has_queued_since_forward_ = false;
    if (forgets_at_forward_) forget_callbacks();
    notify_return(ManagerMethod::reset_for_new_step);
  }

  void on_forward_end(HookHost& host) override { schedule_parent_epilogue(host); }

  void on_graph_task_begin(HookHost&, GraphTaskId task) override {
    tasks_.push_back({.id = task});
    settled_task_ = kNotSettled;
  }

  void on_graph_task_end(HookHost& host, GraphTaskId task, bool raised) override {
    ZP_CHECK(!tasks_.empty() && tasks_.back().id == task, "graph tasks of a thread nest");
    // Parameters of no group have no hooks that would report work.
    const bool has_worked = has_unreduced_work_ && tasks_.back().has_worked;
    const bool may_leave_work =
        has_worked || tasks_.back().has_failed_inside || tasks_.back().owes_epilogue;
    std::exception_ptr failure;  // of an observer: what ended has ended all the same
    try {
      if (raised) leave(tasks_.back());
    } catch (...) {
      failure = std::current_exception();
    }
    tasks_.pop_back();
    settled_task_ = kNotSettled;
    if (has_worked && !tasks_.empty()) tasks_.back().has_worked = true;
    if (raised && may_leave_work && !tasks_.empty()) tasks_.back().has_failed_inside = true;
    if (raised && may_leave_work && tasks_.empty()) {
      forget_work();
      host.abandon_gradients();
    }
    if (failure) std::rethrow_exception(failure);
    schedule_parent_epilogue(host);
  }

  void on_prologue(HookHost& host) override {
    TaskDecision& task = current_task(host);
    enter(task);
    queue_callback_once(host, task);
  }

  bool before_gradient(HookHost& host) override {
    has_unreduced_work_ = true;
    if (!tasks_.empty()) tasks_.back().has_worked = true;
    if (!can_skip_policy(host.current_graph_task())) find_owing_task(host);
    return false;
  }

  void after_gradient(HookHost&, bool) override {}

  void on_final_callback(HookHost& host) override {
    TaskDecision& task = current_task(host);
    task.is_callback_queued = false;
    if (is_backward_marked(host)) return;  // engine.backward runs the epilogue itself
    if (!task.owes_epilogue && !has_unreduced_work_) return;
    enter(task);  // for hooks that no prologue announced
    host.run_post_hook();
  }

  void on_epilogue(HookHost& host) override {
    forget_work();
    // An explicit epilogue settles every backward of engine.backward, an automatic one its task's.
    if (!is_backward_marked(host) && !tasks_.empty()) return leave(tasks_.back());
    notify_call(ManagerMethod::exit_backward);
    for (TaskDecision& task : tasks_) task.owes_epilogue = false;
    pending_epilogues_ = 0;
    notify_return(ManagerMethod::exit_backward);
  }

  void on_zero_grad() override { forget_work(); }

  void on_backward_end(HookHost& host, bool raised) override {
    if (!raised || !tasks_.empty()) return;
    pending_epilogues_ = 0;
    if (has_unreduced_work_) {
      forget_work();
      host.abandon_gradients();
    }
  }

  // What tiles have added waits for the backward of their forward. Upstream takes the step, without
  // what H23 left.
  bool refuses_step() const override {
    return (pending_epilogues_ > 0 || has_unreduced_work_) && !forgets_at_forward_alone_;
  }
  void set_observer(ManagerObserver* observer) override { observer_ = observer; }

  BackwardState state() const override {
    BackwardState state;
    state.post_hooks = 1;
    state.active_depth = pending_epilogues_;
    if (!tasks_.empty() && tasks_.back().is_callback_queued) {
      state.is_callback_queued = true;
      state.callback_graph_task = tasks_.back().id;
    }
    return state;
  }

  void append_state(std::string& bytes) const override {
    for (const TaskDecision& task : tasks_) {
      append_bytes(bytes, task.id.value);
      append_bytes(bytes, static_cast<std::uint8_t>((task.owes_epilogue ? 1U : 0U) |
                                                    (task.has_failed_inside ? 2U : 0U) |
                                                    (task.has_worked ? 4U : 0U)));
      append_bytes(bytes, task.is_callback_queued);
    }
    append_bytes(bytes, GraphTaskId::none().value);  // ends the list
    append_bytes(bytes, pending_epilogues_);
    append_bytes(bytes, has_unreduced_work_);
    if (forgets_at_forward_alone_) append_bytes(bytes, has_queued_since_forward_);
  }

 private:
  void forget_work() {
    has_unreduced_work_ = false;
    settled_task_ = kNotSettled;
  }

  static bool is_backward_marked(const HookHost& host) {
    return host.tracker().is_backward_marked();
  }

  TaskDecision& current_task(const HookHost& host) {
    const GraphTaskId id = host.current_graph_task();
    ZP_CHECK(!tasks_.empty() && tasks_.back().id == id,
             "an engine event came from a graph task whose begin was not reported");
    return tasks_.back();
  }

  void enter(TaskDecision& task) {
    if (task.owes_epilogue) return;
    notify_call(ManagerMethod::enter_backward);
    task.owes_epilogue = true;
    ++pending_epilogues_;
    notify_return(ManagerMethod::enter_backward);
  }

  // Its epilogue ran, or it failed and owes none; observers see its depth go.
  void leave(TaskDecision& task) {
    if (!task.owes_epilogue) return;
    const auto settle = [&] {
      task.owes_epilogue = false;
      --pending_epilogues_;
    };
    try {
      notify_call(ManagerMethod::exit_backward);
    } catch (...) {
      settle();
      throw;
    }
    settle();
    notify_return(ManagerMethod::exit_backward);
  }

  // The task whose end reduces what a hook of the current task adds, or null when a later
  // backward of the open forward does it.
  TaskDecision* task_that_reduces(const HookHost& host) {
    for (auto task = tasks_.rbegin(); task != tasks_.rend(); ++task) {
      if (task->owes_epilogue) return &*task;
      if (starts_in_forward(host, task->id)) return nullptr;
    }
    return tasks_.empty() ? nullptr : &tasks_.front();
  }

  // A pre-user backward: that of the forward around it is still to come.
  static bool starts_in_forward(const HookHost& host, GraphTaskId task) {
    const BackwardTracker::OpenTask* open = host.tracker().find(task);
    return open != nullptr && open->starts_in_forward;
  }

  // Only the current task can be given a callback (rule C1); an outer owner gets its own when
  // the nested task ends.
  void find_owing_task(HookHost& host) {
    TaskDecision& task = current_task(host);
    settled_task_ = task.id;
    if (task_that_reduces(host) == &task) queue_callback_once(host, task);
  }

  // An engine.backward settles it by itself, whosever task is around it.
  void schedule_parent_epilogue(HookHost& host) {
    if (!has_unreduced_work_ || tasks_.empty() || is_backward_marked(host)) return;
    if (task_that_reduces(host) == &tasks_.back()) queue_callback_once(host, tasks_.back());
  }

  void queue_callback_once(HookHost& host, TaskDecision& task) {
    if (task.is_callback_queued || (forgets_at_forward_alone_ && has_queued_since_forward_)) return;
    host.queue_callback();
    task.is_callback_queued = true;
    has_queued_since_forward_ = true;
  }

  void forget_callbacks() {
    for (TaskDecision& task : tasks_) task.is_callback_queued = false;
    settled_task_ = kNotSettled;
  }

  void notify_call(ManagerMethod method) {
    if (observer_ != nullptr) observer_->on_manager_call(method, state(), std::nullopt);
  }
  void notify_return(ManagerMethod method) {
    if (observer_ != nullptr) observer_->on_manager_return(method, state(), std::nullopt, false);
  }

  std::vector<TaskDecision> tasks_;  // the open ones, innermost last
  std::int32_t pending_epilogues_ = 0;
  bool has_unreduced_work_ = false;
  bool has_queued_since_forward_ = false;
  const bool forgets_at_forward_;        // H20
  const bool forgets_at_forward_alone_;  // H23
  ManagerObserver* observer_ = nullptr;
};

}  // namespace

std::unique_ptr<HookPolicy> make_exact() {
  return make_exact(Quirks());
}

std::unique_ptr<HookPolicy> make_exact(const Quirks& quirks) {
  return std::make_unique<ExactPolicy>(quirks);
}

}  // namespace zeroproof
