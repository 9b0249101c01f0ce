// What the policies cost in counted work: queries of the expected set, membership checks, heap
// allocations and epilogues a backward. Counts, not times, so that they can gate.
#include <gtest/gtest.h>

#include <memory>
#include <string_view>

#include "sim/protocol/counting_host.h"
#include "tests/engine/heap_count.h"
#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {
namespace {

// Work of one backward after a first one, which may grow buffers.
struct Cost {
  std::uint64_t expected_set_queries = 0;
  std::uint64_t membership_queries = 0;
  std::uint64_t epilogues = 0;
  std::uint64_t allocations = 0;
};

Cost cost_of(std::string_view policy, std::size_t params) {
  const std::unique_ptr<HookPolicy> made = (*find_policy(policy))->make();
  NullSink sink;
  CountingHost host(params, sink);
  host.attach(*made);
  host.run_backward();
  const Cost before{host.expected_set_queries(), host.membership_queries(), host.epilogues(),
                    heap_allocations()};
  host.run_backward();
  return {host.expected_set_queries() - before.expected_set_queries,
          host.membership_queries() - before.membership_queries,
          host.epilogues() - before.epilogues, heap_allocations() - before.allocations};
}

class HookPolicyCost : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(HookPolicyCost, Of_exact_has_no_expected_set_query) {
  const Cost cost = cost_of("exact", GetParam());
  EXPECT_EQ(cost.expected_set_queries, 0U);
  EXPECT_EQ(cost.membership_queries, 0U);
}

TEST_P(HookPolicyCost, Of_counting_once_a_phase_is_linear) {
  for (const char* policy :
       {"deepspeed-0.18.3", "deepspeed-0.18.7", "deepspeed-0.19.6", "deepspeed-pr8245", "x2"}) {
    const Cost cost = cost_of(policy, GetParam());
    EXPECT_EQ(cost.expected_set_queries, 1U) << policy;
    EXPECT_EQ(cost.membership_queries, GetParam()) << policy;
  }
}

TEST_P(HookPolicyCost, Of_counting_in_every_hook_is_quadratic) {
  const Cost cost = cost_of("deepspeed-0.18.5", GetParam());
  EXPECT_EQ(cost.expected_set_queries, GetParam());
  EXPECT_EQ(cost.membership_queries, GetParam() * GetParam());
}

TEST_P(HookPolicyCost, Has_no_heap_allocation_on_the_hook_path) {
  for (const PolicyInfo& policy : policy_catalogue()) {
    EXPECT_EQ(cost_of(policy.id, GetParam()).allocations, 0U) << policy.id;
  }
}

TEST_P(HookPolicyCost, Has_one_epilogue_a_backward) {
  for (const PolicyInfo& policy : policy_catalogue()) {
    EXPECT_EQ(cost_of(policy.id, GetParam()).epilogues, 1U) << policy.id;
  }
}

INSTANTIATE_TEST_SUITE_P(Params, HookPolicyCost, ::testing::Values(16U, 147U, 1024U));

TEST(AllocationCounter, Counts) {
  const std::uint64_t before = heap_allocations();
  const auto kept = std::make_unique<std::uint64_t>(before);
  EXPECT_GT(heap_allocations(), *kept);
}

}  // namespace
}  // namespace zeroproof
