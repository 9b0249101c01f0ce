// The hook-state manager against a plain model written from the tables of
// docs/spec/zero.md 1.2, 1.3 and 1.6, under random sequences of its methods.
#include "zeroproof/internal/engine/hooks/hook_state_manager.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <rapidcheck/state.h>

#include <algorithm>
#include <array>
#include <memory>
#include <ostream>
#include <string>

#include "engine/hooks/manager_policy.h"
#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {
namespace {

constexpr int kNoTask = -1;

// The variables of table 1.2 under their symbols, and where the manager stands.
struct Table {
  int rem = 0, H = 1, d = 0;
  bool seen = false, epi = false;
  int fired = 0, maxE = 0;
  bool q = false;
  int qg = kNoTask;

  bool resets_at_first_enter = false;  // 1.6: V2, V3
  bool recovers_at_reset = false;      // 1.6: V3
  bool has_api = true;
  int post_hooks_run = 0;
  int callbacks_appended = 0;
};

enum class Operation {
  enter,
  exit,
  reset_step,
  refresh,
  reenter,
  queue,
  update,
  run_post,
  mark_epilogue
};
constexpr std::array kOperationNames = {"enter", "exit",   "reset_step", "refresh",      "reenter",
                                        "queue", "update", "run_post",   "mark_epilogue"};

// One line of a test script: an operation with its surroundings.
struct Step {
  Operation operation = Operation::enter;
  int task = kNoTask;  // G
  int expected = 0;    // c of update
  bool post_hook_raises = false;
};

enum class Returned { nothing, no, yes, raised };

Returned returned_of(bool value) {
  return value ? Returned::yes : Returned::no;
}

void model_enter(Table& t) {
  if (t.resets_at_first_enter && t.d == 0 && !t.seen) {
    t.fired = t.maxE = t.rem = 0;
    t.q = false;
    t.qg = kNoTask;
  }
  t.d = t.d + 1;
  t.seen = true;
}

// The post hook of this test runs an epilogue: it marks it and leaves one backward.
Returned model_run_post(Table& t, const Step& step) {
  if (t.d == 0) return Returned::nothing;
  for (int h = 0; h < t.H; ++h) {
    ++t.post_hooks_run;
    if (step.post_hook_raises) return Returned::raised;
    t.epi = true;
    t.d = std::max(t.d - 1, 0);
  }
  return Returned::nothing;
}

bool model_queue(Table& t, const Step& step) {
  if (t.q) return true;
  if (t.d == 0) return false;
  if (!t.has_api || step.task == kNoTask) return false;
  ++t.callbacks_appended;
  t.q = true;
  t.qg = step.task;
  return true;
}

Returned model_update(Table& t, const Step& step) {
  t.fired = t.fired + 1;
  t.maxE = std::max(t.maxE, step.expected);
  if (model_queue(t, step)) {
    t.rem = std::max(t.maxE - t.fired, 0);
    return Returned::nothing;
  }
  if (t.fired >= t.maxE) {
    t.rem = 0;
    return model_run_post(t, step);
  }
  t.rem = t.maxE - t.fired;
  return Returned::nothing;
}

Returned model_reset(Table& t) {
  const bool was_incomplete = t.d > 0;
  t.seen = t.epi = t.q = false;
  t.fired = t.maxE = 0;
  t.qg = kNoTask;
  if (!t.recovers_at_reset) return Returned::nothing;
  t.rem = t.d = 0;
  return returned_of(was_incomplete);
}

Returned perform(Table& t, const Step& step) {
  const bool is_between_phases = t.rem == 0 && t.d == 0 && t.seen;
  switch (step.operation) {
    case Operation::enter:
      model_enter(t);
      return Returned::nothing;
    case Operation::exit:
      t.d = std::max(t.d - 1, 0);
      return Returned::nothing;
    case Operation::reset_step:
      return model_reset(t);
    case Operation::refresh:
      return returned_of(t.fired == 0 || is_between_phases);
    case Operation::reenter:
      if (is_between_phases) model_enter(t);
      return Returned::nothing;
    case Operation::queue:
      return returned_of(model_queue(t, step));
    case Operation::update:
      return model_update(t, step);
    case Operation::run_post:
      return model_run_post(t, step);
    case Operation::mark_epilogue:
      t.epi = true;
      return Returned::nothing;
  }
  return Returned::nothing;
}

// The manager under test in surroundings that a step sets.
class Rig final : public HookHost {
 public:
  struct Raised {};

  explicit Rig(const Table& start, const ManagerRules& rules)
      : manager_(rules), has_api_(start.has_api) {
    for (int hook = 0; hook < start.H; ++hook) manager_.register_post_hook();
  }

  const BackwardState& state() const { return manager_.state(); }
  int post_hooks_run() const { return post_hooks_run_; }
  int callbacks_appended() const { return callbacks_appended_; }

  Returned perform(const Step& step) {
    step_ = step;
    try {
      return dispatch();
    } catch (const Raised&) {
      return Returned::raised;
    }
  }

  bool has_callback_api() const override { return has_api_; }
  GraphTaskId current_graph_task() const override { return GraphTaskId{step_.task}; }
  void queue_callback() override { ++callbacks_appended_; }
  std::int32_t count_expected_hooks() override { return 0; }
  void abandon_gradients() override {}
  void run_post_hook() override {
    ++post_hooks_run_;
    if (step_.post_hook_raises) throw Raised{};
    manager_.set_epilogue_ran(true);
    manager_.exit_backward();
  }

 private:
  Returned dispatch() {
    switch (step_.operation) {
      case Operation::enter:
        manager_.enter_backward();
        break;
      case Operation::exit:
        manager_.exit_backward();
        break;
      case Operation::reset_step: {
        const auto was_incomplete = manager_.reset_for_new_step();
        return was_incomplete ? returned_of(*was_incomplete) : Returned::nothing;
      }
      case Operation::refresh:
        return returned_of(manager_.should_refresh_expected_hook_count());
      case Operation::reenter:
        manager_.reenter_backward_if_needed();
        break;
      case Operation::queue:
        return returned_of(manager_.queue_post_backward_callback(*this));
      case Operation::update:
        manager_.update_hook_state_and_maybe_run_epilogue(*this, step_.expected);
        break;
      case Operation::run_post:
        manager_.run_grad_acc_post_hooks(*this);
        break;
      case Operation::mark_epilogue:
        manager_.set_epilogue_ran(true);
        break;
    }
    return Returned::nothing;
  }

  HookStateManager manager_;
  bool has_api_;
  Step step_;
  int post_hooks_run_ = 0;
  int callbacks_appended_ = 0;
};

void compare(const Table& t, const Rig& rig) {
  const BackwardState& state = rig.state();
  RC_ASSERT(state.remaining_hooks == t.rem);
  RC_ASSERT(state.post_hooks == t.H);
  RC_ASSERT(state.active_depth == t.d);
  RC_ASSERT(state.is_backward_seen_this_step == t.seen);
  RC_ASSERT(state.ran_epilogue_this_backward == t.epi);
  RC_ASSERT(state.hooks_fired == t.fired);
  RC_ASSERT(state.max_expected_hooks == t.maxE);
  RC_ASSERT(state.is_callback_queued == t.q);
  RC_ASSERT(state.callback_graph_task.value == t.qg);
  RC_ASSERT(rig.post_hooks_run() == t.post_hooks_run);
  RC_ASSERT(rig.callbacks_appended() == t.callbacks_appended);
}

struct ManagerCommand : rc::state::Command<Table, Rig> {
  ManagerCommand() {
    step.operation = static_cast<Operation>(*rc::gen::inRange(0, 9));
    step.task = *rc::gen::element(kNoTask, 3, 4);
    step.expected = *rc::gen::inRange(0, 4);
    step.post_hook_raises = *rc::gen::inRange(0, 5) == 0;
  }

  void apply(Table& table) const override { perform(table, step); }

  void run(const Table& before, Rig& rig) const override {
    Table after = before;
    const Returned expected = perform(after, step);
    RC_ASSERT(static_cast<int>(rig.perform(step)) == static_cast<int>(expected));
    compare(after, rig);
  }

  void show(std::ostream& out) const override {
    out << kOperationNames[static_cast<std::size_t>(step.operation)] << "(G=" << step.task
        << ", c=" << step.expected << (step.post_hook_raises ? ", raises)" : ")");
  }

  Step step;
};

// What 1.6 says of the versions, and which policy file must have these rules.
struct Version {
  const char* policy;
  bool resets_at_first_enter;
  bool recovers_at_reset;
};
constexpr Version kVersions[] = {{"deepspeed-0.18.5", false, false},
                                 {"deepspeed-0.18.7", true, false},
                                 {"deepspeed-0.19.6", true, false},
                                 {"deepspeed-pr8245", true, true},
                                 {"x2", true, false}};

ManagerRules rules_of(const char* policy) {
  const std::unique_ptr<HookPolicy> made = (*find_policy(policy))->make();
  return static_cast<const ManagerPolicy&>(*made).rules().manager;
}

void behaves_like_the_table(const Version& version) {
  Table start;
  start.resets_at_first_enter = version.resets_at_first_enter;
  start.recovers_at_reset = version.recovers_at_reset;
  start.has_api = *rc::gen::arbitrary<bool>();
  start.H = *rc::gen::inRange(0, 3);
  Rig rig(start, rules_of(version.policy));
  rc::state::check(start, rig, rc::state::gen::execOneOfWithArgs<ManagerCommand>());
}

RC_GTEST_PROP(HookStateManager, Of_deepspeed_0_18_5_behaves_like_the_table, ()) {
  behaves_like_the_table(kVersions[0]);
}
RC_GTEST_PROP(HookStateManager, Of_deepspeed_0_18_7_behaves_like_the_table, ()) {
  behaves_like_the_table(kVersions[1]);
}
RC_GTEST_PROP(HookStateManager, Of_deepspeed_0_19_6_behaves_like_the_table, ()) {
  behaves_like_the_table(kVersions[2]);
}
RC_GTEST_PROP(HookStateManager, Of_deepspeed_pr8245_behaves_like_the_table, ()) {
  behaves_like_the_table(kVersions[3]);
}
RC_GTEST_PROP(HookStateManager, Of_x2_behaves_like_the_table, ()) {
  behaves_like_the_table(kVersions[4]);
}

TEST(HookStateManager, Unregistered_runs_no_post_hook) {
  Table start;
  Rig rig(start, {});
  EXPECT_EQ(rig.state().post_hooks, 1);
  HookStateManager manager(ManagerRules{});
  manager.register_post_hook();
  manager.unregister_all();
  manager.enter_backward();
  manager.run_grad_acc_post_hooks(rig);
  EXPECT_EQ(rig.post_hooks_run(), 0);
}

TEST(HookStateManager, Names_every_method_both_ways) {
  for (int method = 0; method < 8; ++method) {
    const auto known = static_cast<ManagerMethod>(method);
    EXPECT_EQ(manager_method_of(manager_method_name(known)), known);
  }
  EXPECT_FALSE(manager_method_of("enter"));
}

}  // namespace
}  // namespace zeroproof
