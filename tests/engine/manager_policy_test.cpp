// Where the clients of upstream's hook-state manager differ from release to release.
#include "engine/hooks/manager_policy.h"

#include <gtest/gtest.h>

#include <memory>

#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {
namespace {

// A host in which nothing runs by itself.
class IdleHost final : public HookHost {
 public:
  bool has_callback_api() const override { return true; }
  GraphTaskId current_graph_task() const override { return GraphTaskId{0}; }
  void queue_callback() override {}
  std::int32_t count_expected_hooks() override { return 0; }
  void run_post_hook() override {}
  void abandon_gradients() override {}
};

struct PolicyRow {
  const char* policy;
  bool runs_after_abort;       // engine.backward raised: its mark is still there
  bool runs_after_inner_call;  // one of two nested calls returned: the outer one still runs
  bool skips_at_depth_two;
  bool demands_restart;
};

constexpr PolicyRow kRows[] = {{"deepspeed-0.18.5", true, false, false, false},
                               {"deepspeed-0.18.7", true, false, false, false},
                               {"deepspeed-0.19.6", false, true, true, false},
                               {"deepspeed-pr8245", false, false, false, true},
                               {"x2", false, false, false, false}};

std::unique_ptr<HookPolicy> policy_of(const PolicyRow& row) {
  return (*find_policy(row.policy))->make();
}

TEST(ManagerPolicy, Keeps_or_takes_back_the_mark_of_a_backward_that_raised) {
  IdleHost host;
  for (const PolicyRow& row : kRows) {
    const auto policy = policy_of(row);
    policy->on_backward_begin(host);
    policy->on_backward_end(host, true);
    EXPECT_EQ(policy->is_backward_running(), row.runs_after_abort) << row.policy;
  }
}

TEST(ManagerPolicy, Counts_nested_calls_of_engine_backward_since_0_19_6) {
  IdleHost host;
  for (const PolicyRow& row : kRows) {
    const auto policy = policy_of(row);
    policy->on_backward_begin(host);
    policy->on_backward_begin(host);
    policy->on_backward_end(host, false);
    EXPECT_EQ(policy->is_backward_running(), row.runs_after_inner_call) << row.policy;
    policy->on_backward_end(host, false);
    EXPECT_FALSE(policy->is_backward_running()) << row.policy;
  }
}

TEST(ManagerPolicy, Skips_the_manual_epilogue_above_depth_one_since_0_19_6) {
  IdleHost host;
  for (const PolicyRow& row : kRows) {
    const auto policy = policy_of(row);
    policy->on_prologue(host);
    EXPECT_FALSE(policy->skips_manual_epilogue()) << row.policy;
    policy->on_prologue(host);
    EXPECT_EQ(policy->skips_manual_epilogue(), row.skips_at_depth_two) << row.policy;
    EXPECT_EQ(policy->demands_restart(), row.demands_restart) << row.policy;
  }
}

}  // namespace
}  // namespace zeroproof
