// exact, driven by a fake autograd: cases that PyTorch's nesting allows and the golden scenarios
// do not show, and random nestings judged by books of the test's own.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/engine/fake_autograd.h"

namespace zeroproof {
namespace {

using testing::FakeAutograd;
using testing::FakeEngine;

std::vector<std::int64_t> automatic_tasks(const FakeEngine& engine) {
  std::vector<std::int64_t> tasks;
  for (const auto& epilogue : engine.epilogues) {
    if (epilogue.is_automatic) tasks.push_back(epilogue.task);
  }
  return tasks;
}

class ExactPolicy : public ::testing::Test {
 protected:
  void expect_clean() {
    for (const auto& one : autograd_.engines()) {
      EXPECT_EQ(one->policy().state().active_depth, 0);
      EXPECT_FALSE(one->policy().refuses_step());
      EXPECT_FALSE(one->tracker().is_backward_marked());
    }
  }
  void forward() {
    engine_.forward_begin();
    engine_.forward_end();
  }
  std::vector<std::int64_t> automatic() const { return automatic_tasks(engine_); }

  FakeAutograd autograd_;
  FakeEngine& engine_ = autograd_.add_engine();
};

TEST_F(ExactPolicy, Reduces_a_nested_task_without_prologue_at_the_end_of_the_outer_one) {
  forward();
  const auto outer = autograd_.begin();
  engine_.prologue();
  engine_.gradient();
  autograd_.begin();
  engine_.gradient();
  EXPECT_TRUE(autograd_.end());
  EXPECT_EQ(automatic().size(), 0U);
  engine_.gradient();
  EXPECT_TRUE(autograd_.end());
  EXPECT_EQ(automatic(), std::vector{outer});
  EXPECT_EQ(engine_.unreduced, 0);
  expect_clean();
}

TEST_F(ExactPolicy, Reduces_hooks_of_a_nested_task_that_no_prologue_announced) {
  forward();
  const auto outer = autograd_.begin();
  autograd_.begin();
  autograd_.begin();
  engine_.gradient();
  autograd_.end();
  autograd_.end();
  EXPECT_EQ(engine_.unreduced, 1);
  autograd_.end();
  EXPECT_EQ(automatic(), std::vector{outer});
  expect_clean();
}

TEST_F(ExactPolicy, Hands_a_tiled_loss_inside_a_recompute_to_the_task_around_it) {
  forward();
  const auto outer = autograd_.begin();
  engine_.prologue();
  engine_.forward_begin();  // the checkpoint runs the forward again
  autograd_.begin();        // and its tiled loss a backward of its own
  engine_.gradient();
  autograd_.end();
  engine_.forward_end();
  const auto segment = autograd_.begin();
  engine_.prologue();
  engine_.gradient();
  autograd_.end();
  EXPECT_EQ(automatic(), std::vector{segment});
  autograd_.end();
  EXPECT_EQ(automatic(), (std::vector{segment, outer}));
  EXPECT_EQ(engine_.unreduced, 0);
  expect_clean();
}

TEST_F(ExactPolicy, Hands_a_tiled_loss_of_a_recompute_on_though_no_prologue_ever_ran) {
  const auto outer = autograd_.begin();
  engine_.forward_begin();
  autograd_.begin();
  engine_.gradient();
  autograd_.end();
  engine_.forward_end();
  EXPECT_EQ(engine_.unreduced, 1);
  autograd_.end();
  EXPECT_EQ(automatic(), std::vector{outer});
  expect_clean();
}

TEST_F(ExactPolicy, Leaves_a_tiled_loss_to_the_backward_of_its_forward) {
  engine_.forward_begin();
  autograd_.begin();
  engine_.gradient();
  autograd_.end();
  engine_.forward_end();
  EXPECT_EQ(engine_.unreduced, 1);
  EXPECT_TRUE(engine_.policy().refuses_step());  // which would lose it
  const auto backward = autograd_.begin();
  engine_.prologue();
  autograd_.end();
  EXPECT_EQ(automatic(), std::vector{backward});
  EXPECT_EQ(engine_.unreduced, 0);
  expect_clean();
}

TEST_F(ExactPolicy, Goes_on_after_a_nested_exception_that_the_outer_task_caught) {
  forward();
  const auto outer = autograd_.begin();
  engine_.prologue();
  autograd_.begin();
  engine_.prologue();
  engine_.gradient();
  EXPECT_FALSE(autograd_.end(true));
  EXPECT_EQ(engine_.abandoned, 0);
  engine_.gradient();
  EXPECT_TRUE(autograd_.end());
  EXPECT_EQ(automatic(), std::vector{outer});
  EXPECT_EQ(engine_.unreduced, 0);
  expect_clean();
}

TEST_F(ExactPolicy, Reduces_what_a_caught_nested_exception_left_though_nothing_follows) {
  const auto outer = autograd_.begin();
  autograd_.begin();
  engine_.prologue();
  engine_.gradient();
  autograd_.end(true);
  EXPECT_TRUE(autograd_.end());
  EXPECT_EQ(automatic(), std::vector{outer});
  EXPECT_EQ(engine_.unreduced, 0);
  expect_clean();
}

TEST_F(ExactPolicy, Abandons_a_manual_backward_that_raised) {
  forward();
  autograd_.begin();
  engine_.prologue();
  engine_.gradient();
  EXPECT_TRUE(engine_.policy().refuses_step());
  autograd_.end(true);
  EXPECT_EQ(engine_.abandoned, 1);
  EXPECT_EQ(automatic().size(), 0U);
  expect_clean();
}

// Only this call of the observer shows readers of a trace that d is 0 again.
TEST_F(ExactPolicy, Shows_observers_that_a_failed_task_owes_nothing) {
  struct LastDepth final : ManagerObserver {
    void on_manager_call(ManagerMethod, const BackwardState&,
                         std::optional<std::int64_t>) override {}
    void on_manager_return(ManagerMethod, const BackwardState& after, std::optional<bool>,
                           bool) override {
      depth = after.active_depth;
    }
    int depth = -1;
  } seen;
  engine_.policy().set_observer(&seen);
  autograd_.begin();
  engine_.prologue();
  EXPECT_EQ(seen.depth, 1);
  autograd_.end(true);
  EXPECT_EQ(seen.depth, 0);
}

TEST_F(ExactPolicy, Abandons_a_backward_whose_post_hook_raised) {
  forward();
  autograd_.begin();
  engine_.prologue();
  engine_.gradient();
  engine_.next_post_hook_raises = true;
  EXPECT_FALSE(autograd_.end());
  EXPECT_EQ(engine_.abandoned, 1);
  expect_clean();
}

TEST_F(ExactPolicy, Recovers_from_an_engine_backward_that_raised) {
  forward();
  engine_.backward_begin();
  autograd_.begin();
  engine_.prologue();
  engine_.gradient();
  autograd_.end(true);
  engine_.backward_end(true);
  EXPECT_EQ(engine_.abandoned, 1);
  expect_clean();
  forward();
  const auto manual = autograd_.begin();
  engine_.prologue();
  engine_.gradient();
  autograd_.end();
  EXPECT_EQ(automatic(), std::vector{manual});
}

TEST_F(ExactPolicy, Leaves_the_epilogue_of_engine_backward_to_the_engine) {
  forward();
  engine_.backward_begin();
  autograd_.begin();
  engine_.prologue();
  engine_.gradient();
  autograd_.begin();
  engine_.gradient();
  autograd_.end();
  autograd_.end();
  EXPECT_EQ(engine_.epilogues.size(), 0U);
  engine_.backward_end(false);
  ASSERT_EQ(engine_.epilogues.size(), 1U);
  EXPECT_FALSE(engine_.epilogues[0].is_automatic);
  expect_clean();
}

TEST_F(ExactPolicy, Settles_open_tasks_with_an_explicit_epilogue) {
  forward();
  engine_.backward_begin();
  autograd_.begin();
  engine_.prologue();
  engine_.gradient();
  engine_.epilogue(false);  // while the task is open
  EXPECT_EQ(engine_.policy().state().active_depth, 0);
  autograd_.end();
  engine_.backward_end(false);
  EXPECT_EQ(automatic().size(), 0U);
  expect_clean();
}

TEST_F(ExactPolicy, Runs_one_epilogue_for_two_forwards_in_one_loss) {
  forward();
  forward();
  const auto task = autograd_.begin();
  engine_.prologue();
  engine_.gradient();
  engine_.prologue();
  engine_.gradient();
  EXPECT_EQ(engine_.policy().state().active_depth, 1);
  autograd_.end();
  EXPECT_EQ(automatic(), std::vector{task});
  expect_clean();
}

TEST_F(ExactPolicy, Keeps_two_engines_apart) {
  FakeEngine& other = autograd_.add_engine();
  forward();
  other.forward_begin();
  other.forward_end();
  const auto outer = autograd_.begin();
  engine_.prologue();
  engine_.gradient();
  const auto nested = autograd_.begin();
  other.prologue();
  other.gradient();
  autograd_.end();
  EXPECT_EQ(automatic_tasks(other), std::vector{nested});
  EXPECT_EQ(automatic().size(), 0U);
  autograd_.end();
  EXPECT_EQ(automatic(), std::vector{outer});
  EXPECT_EQ(automatic_tasks(other), std::vector{nested});
  expect_clean();
}

TEST_F(ExactPolicy, Does_not_touch_an_engine_that_took_no_part) {
  FakeEngine& other = autograd_.add_engine();
  std::string before;
  other.policy().append_state(before);
  forward();
  autograd_.begin();
  engine_.prologue();
  engine_.gradient();
  autograd_.end(true);
  std::string after;
  other.policy().append_state(after);
  EXPECT_EQ(before, after);
  EXPECT_EQ(other.abandoned, 0);
}

TEST(ExactPolicyMode, Is_refused_without_the_callback_api) {
  const auto made = make_policy("exact", PolicyMode::count_fallback);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::usage);
  EXPECT_NE(made.error().text.find("graph_task_callback"), std::string::npos) << made.error().text;
  EXPECT_NE(made.error().text.find("exact"), std::string::npos);
}

// Random nestings. An event that makes no sense where it stands is left out, so that every
// shrunk list of events is a program too.
enum class Happening {
  forward,
  task,
  backward,
  close,
  close_raised,
  prologue,
  gradient,
  fail_hook
};

struct Event {
  Happening happening = Happening::close;
  std::size_t engine = 0;
};

// What the test itself knows about one graph task and one engine.
struct TaskBook {
  std::int64_t id = 0;
  std::map<std::size_t, bool> had_prologue_outside_backward;
};

class Nesting {
 public:
  Nesting() {
    autograd_.add_engine();
    autograd_.add_engine();
  }

  void play(const std::vector<Event>& events) {
    for (const Event& event : events) play(event);
    while (!open_.empty()) close(false);
    judge_closed();
    for (std::size_t at = 0; at < 2; ++at) finish_with_a_user_backward(at);
  }

 private:
  enum class Bracket { forward, task, backward };
  struct Open {
    Bracket bracket = Bracket::task;
    std::size_t engine = 0;
    bool has_run_task = false;  // backward: its one graph task is over
  };

  FakeEngine& engine(std::size_t at) { return *autograd_.engines()[at]; }
  bool is_innermost(Bracket bracket) const {
    return !open_.empty() && open_.back().bracket == bracket;
  }

  void play(const Event& event) {
    switch (event.happening) {
      case Happening::forward:
        if (!open_.empty() && !is_innermost(Bracket::task)) return;
        open_.push_back({Bracket::forward, event.engine});
        return engine(event.engine).forward_begin();
      case Happening::task:
        if (is_innermost(Bracket::backward) && open_.back().has_run_task) return;
        return begin_task();
      case Happening::backward:
        if (!open_.empty()) return;
        open_.push_back({Bracket::backward, event.engine});
        return engine(event.engine).backward_begin();
      case Happening::close:
      case Happening::close_raised:
        if (!open_.empty()) close(event.happening == Happening::close_raised);
        return;
      case Happening::prologue:
        if (is_innermost(Bracket::task)) run_prologue(event.engine);
        return;
      case Happening::gradient:
        if (is_innermost(Bracket::task)) run_gradient(event.engine);
        return;
      case Happening::fail_hook:
        engine(event.engine).next_post_hook_raises = true;
        return;
    }
  }

  void begin_task() {
    if (autograd_.open_tasks() == 0) start_root();
    open_.push_back({Bracket::task, 0});
    books_.push_back({autograd_.begin(), {}});
  }

  // Work of a root is due at its end, but for a backward that a forward of the engine started.
  void start_root() {
    for (std::size_t at = 0; at < 2; ++at) {
      root_works_[at] = 0;
      is_due_at_root_end_[at] =
          !(is_innermost(Bracket::forward) && open_.back().engine == at) && !engine(at).is_running;
    }
  }

  void run_gradient(std::size_t at) {
    engine(at).gradient();
    ++root_works_[at];
  }

  void run_prologue(std::size_t at) {
    engine(at).prologue();
    books_.back().had_prologue_outside_backward[at] = !engine(at).is_running;
  }

  // An exception of a task may be caught by the task around it, never by forward or backward.
  void close(bool raised) {
    const Open closed = open_.back();
    open_.pop_back();
    switch (closed.bracket) {
      case Bracket::forward:
        return engine(closed.engine).forward_end();
      case Bracket::backward:
        return engine(closed.engine).backward_end(false);
      case Bracket::task:
        return close_task(raised);
    }
  }

  void close_task(bool raised) {
    const TaskBook book = books_.back();
    books_.pop_back();
    const bool ended_well = autograd_.end(raised);
    for (std::size_t at = 0; at < 2; ++at) judge_task(book, at, ended_well);
    if (autograd_.open_tasks() == 0) judge_root();
    if (!is_innermost(Bracket::backward)) return;
    open_.back().has_run_task = true;
    if (ended_well) return;
    const std::size_t running = open_.back().engine;
    open_.pop_back();
    engine(running).backward_end(true);
  }

  void judge_task(const TaskBook& book, std::size_t at, bool ended_well) {
    std::size_t automatic = 0;
    for (const std::int64_t task : automatic_tasks(engine(at))) automatic += task == book.id;
    const auto known = book.had_prologue_outside_backward.find(at);
    const bool owes = known != book.had_prologue_outside_backward.end() && known->second;
    RC_ASSERT(automatic <= 1U);
    if (ended_well && owes) RC_ASSERT(automatic == 1U);
  }

  void judge_root() {
    for (std::size_t at = 0; at < 2; ++at) {
      if (is_due_at_root_end_[at] && root_works_[at] > 0) RC_ASSERT(engine(at).unreduced == 0);
    }
  }

  void judge_closed() {
    for (std::size_t at = 0; at < 2; ++at) {
      RC_ASSERT(engine(at).policy().state().active_depth == 0);
      RC_ASSERT(engine(at).policy().refuses_step() == (engine(at).unreduced != 0));
      RC_ASSERT(!engine(at).tracker().is_backward_marked());
      RC_ASSERT(engine(at).post_hooks_in_backward == 0);
    }
  }

  void finish_with_a_user_backward(std::size_t at) {
    engine(at).next_post_hook_raises = false;
    engine(at).forward_begin();
    engine(at).forward_end();
    const std::int64_t task = autograd_.begin();
    engine(at).prologue();
    engine(at).gradient();
    autograd_.end();
    RC_ASSERT(engine(at).unreduced == 0);
    RC_ASSERT(automatic_tasks(engine(at)).back() == task);
    RC_ASSERT(engine(at).policy().state().active_depth == 0);
  }

  FakeAutograd autograd_;
  int root_works_[2] = {0, 0};
  bool is_due_at_root_end_[2] = {false, false};
  std::vector<Open> open_;
  std::vector<TaskBook> books_;
};

rc::Gen<std::vector<Event>> random_events() {
  const auto event =
      rc::gen::map(rc::gen::pair(rc::gen::weightedElement<Happening>({{2, Happening::forward},
                                                                      {4, Happening::task},
                                                                      {1, Happening::backward},
                                                                      {4, Happening::close},
                                                                      {1, Happening::close_raised},
                                                                      {4, Happening::prologue},
                                                                      {5, Happening::gradient},
                                                                      {1, Happening::fail_hook}}),
                                 rc::gen::inRange<std::size_t>(0, 2)),
                   [](const std::pair<Happening, std::size_t>& parts) {
                     return Event{parts.first, parts.second};
                   });
  return rc::gen::container<std::vector<Event>>(event);
}

void showValue(const Event& event, std::ostream& out) {
  constexpr const char* kNames[] = {"forward",      "task",     "backward", "close",
                                    "close_raised", "prologue", "gradient", "fail_hook"};
  out << kNames[static_cast<std::size_t>(event.happening)] << event.engine;
}

RC_GTEST_PROP(ExactPolicyNesting, Reduces_or_reports_every_gradient_of_any_nesting, ()) {
  Nesting().play(*random_events());
}

}  // namespace
}  // namespace zeroproof
