// Where the clients of upstream's hook-state manager differ from release to release.
#include "engine/hooks/manager_policy.h"

#include <gtest/gtest.h>

#include <memory>

#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {
namespace {

// A host that does not run callbacks by itself.
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
  RunningMark running_mark;
  bool skips_at_depth_two;
  bool demands_restart;
};

constexpr PolicyRow kRows[] = {{"deepspeed-0.18.5", RunningMark::left_by_exception, false, false},
                               {"deepspeed-0.18.7", RunningMark::left_by_exception, false, false},
                               {"deepspeed-0.19.6", RunningMark::counted, true, false},
                               {"deepspeed-pr8245", RunningMark::restored, false, true},
                               {"x2", RunningMark::restored, false, false}};

std::unique_ptr<HookPolicy> policy_of(const PolicyRow& row) {
  return (*find_policy(row.policy))->make();
}

TEST(ManagerPolicy, Marks_a_running_backward_as_its_release_does) {
  for (const PolicyRow& row : kRows)
    EXPECT_EQ(policy_of(row)->running_mark(), row.running_mark) << row.policy;
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
