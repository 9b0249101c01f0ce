// Which fault is active where, and what faults remember.
#include "props/mutation/active_fault.h"

#include <gtest/gtest.h>

#include <thread>

#include "props/mutation/decorators.h"
#include "props/mutation/fault.h"
#include "props/train/cell_run.h"
#include "props/train/scenario.h"

namespace zeroproof::mutation {
namespace {

TEST(ActiveFault, Is_of_its_scope_and_its_thread) {
  EXPECT_EQ(active_fault(), 0);
  {
    const FaultScope outer(7);
    EXPECT_EQ(active_fault(), 7);
    {
      const FaultScope unmutated(0);
      EXPECT_EQ(active_fault(), 0);
    }
    EXPECT_EQ(active_fault(), 7);
    std::thread([] { EXPECT_EQ(active_fault(), 0); }).join();
  }
  EXPECT_EQ(active_fault(), 0);
}

TEST(ActiveFault, Keeps_state_beside_an_object_until_the_outermost_scope_ends) {
  int one = 0;
  int other = 0;
  {
    const FaultScope scope(1);
    fault_state<int>(&one, "count") = 3;
    {
      const FaultScope inner(0);
      EXPECT_EQ(fault_state<int>(&one, "count"), 3);
    }
    EXPECT_EQ(fault_state<int>(&one, "count"), 3);
    EXPECT_EQ(fault_state<int>(&one, "other"), 0);
    EXPECT_EQ(fault_state<int>(&other, "count"), 0);
  }
  const FaultScope scope(1);
  EXPECT_EQ(fault_state<int>(&one, "count"), 0);
}

// On the simulator ranks are fibers of one thread, on the host threads of their own.
TEST(ActiveFault, Reaches_the_ranks_of_a_mutated_cell_and_no_other_run) {
  for (const bool is_simulated : {true, false}) {
    train::TrainCell cell{.stage = 1, .world_size = 2, .steps = 1};
    if (is_simulated) cell.sim = train::SimOrder();
    const auto norm_of = [&](const Fault* fault) {
      train::TrainCell mutated = cell;
      mutate(fault, mutated);
      const train::CellRun run =
          train::run_ranks(**train::find_scenario("plain"), mutated, {.collects_values = true});
      EXPECT_EQ(active_fault(), 0);
      return run.ranks.at(1).windows.at(0).outcomes.at(0).grad_norm.value_or(0.0);
    };
    const double right = norm_of(nullptr);
    EXPECT_LT(norm_of(find_fault("C13")), right);  // an average in place of a sum
    EXPECT_EQ(norm_of(nullptr), right);
  }
}

TEST(Decorators, Are_known_by_name) {
  train::Subject subject;
  EXPECT_TRUE(add_decorator("share_callbacks", subject));
  EXPECT_NE(subject.decorate_policy, nullptr);
  EXPECT_FALSE(add_decorator("none", subject));
}

}  // namespace
}  // namespace zeroproof::mutation
