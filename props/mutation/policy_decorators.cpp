#include "props/mutation/policy_decorators.h"

#include <optional>
#include <stdexcept>
#include <utility>

namespace zeroproof::mutation {
namespace {

// The host as a decorated policy sees it, without the callbacks that it asks for.
class MuteHost final : public HookHost {
 public:
  explicit MuteHost(HookHost& host) : host_(host) {}
  const BackwardTracker& tracker() const override { return host_.tracker(); }
  bool has_callback_api() const override { return host_.has_callback_api(); }
  GraphTaskId current_graph_task() const override { return host_.current_graph_task(); }
  void queue_callback() override { is_asked_ = true; }
  std::int32_t count_expected_hooks() override { return host_.count_expected_hooks(); }
  void run_post_hook() override { host_.run_post_hook(); }
  void abandon_gradients() override { host_.abandon_gradients(); }
  bool is_asked() const { return is_asked_; }

 private:
  HookHost& host_;
  bool is_asked_ = false;
};

class CallbackAtFirstHook final : public PolicyDecorator {
 public:
  using PolicyDecorator::PolicyDecorator;

  void on_prologue(HookHost& host) override {
    MuteHost mute(host);
    inner().on_prologue(mute);
    is_owed_ = is_owed_ || mute.is_asked();
  }
  bool before_gradient(HookHost& host) override {
    if (std::exchange(is_owed_, false)) host.queue_callback();
    MuteHost mute(host);
    return inner().before_gradient(mute);
  }
  void on_graph_task_end(HookHost& host, GraphTaskId task, bool raised) override {
    if (raised) is_owed_ = false;
    MuteHost mute(host);
    inner().on_graph_task_end(mute, task, raised);
  }

 private:
  bool is_owed_ = false;
};

class SharedCallbacks final : public PolicyDecorator {
 public:
  using PolicyDecorator::PolicyDecorator;

  void on_prologue(HookHost& host) override {
    MuteHost mute(host);
    inner().on_prologue(mute);
    if (mute.is_asked()) queue(host);
  }
  void on_graph_task_begin(HookHost& host, GraphTaskId task) override {
    ++open_tasks_;
    inner().on_graph_task_begin(host, task);
  }
  void on_graph_task_end(HookHost& host, GraphTaskId task, bool raised) override {
    --open_tasks_;
    if (open_tasks_ == 0 || raised) is_pending_ = false;
    MuteHost mute(host);
    inner().on_graph_task_end(mute, task, raised);
    // A nested task has ended: the list is run, with the outer task still at work.
    if (open_tasks_ > 0 && std::exchange(is_pending_, false)) inner().on_final_callback(host);
  }
  void on_final_callback(HookHost& host) override {
    if (std::exchange(is_pending_, false)) inner().on_final_callback(host);
  }

 private:
  void queue(HookHost& host) {
    is_pending_ = true;
    host.queue_callback();
  }

  int open_tasks_ = 0;
  bool is_pending_ = false;
};

class LockedBackwards final : public PolicyDecorator {
 public:
  using PolicyDecorator::PolicyDecorator;

  void on_graph_task_begin(HookHost& host, GraphTaskId task) override {
    if (!owner_) owner_ = task;
    inner().on_graph_task_begin(host, task);
  }
  bool before_gradient(HookHost& host) override {
    if (owner_ && *owner_ != host.current_graph_task())
      throw std::runtime_error("resource deadlock avoided: a backward waits for the one around it");
    return inner().before_gradient(host);
  }
  void on_graph_task_end(HookHost& host, GraphTaskId task, bool raised) override {
    if (owner_ == task) owner_.reset();
    inner().on_graph_task_end(host, task, raised);
  }

 private:
  std::optional<GraphTaskId> owner_;
};

}  // namespace

std::unique_ptr<HookPolicy> lock_backwards(std::unique_ptr<HookPolicy> policy) {
  return std::make_unique<LockedBackwards>(std::move(policy));
}

std::unique_ptr<HookPolicy> queue_callback_at_first_hook(std::unique_ptr<HookPolicy> policy) {
  return std::make_unique<CallbackAtFirstHook>(std::move(policy));
}

std::unique_ptr<HookPolicy> share_callbacks(std::unique_ptr<HookPolicy> policy) {
  return std::make_unique<SharedCallbacks>(std::move(policy));
}

}  // namespace zeroproof::mutation
