#include "props/minimize.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/explorer.h"
#include "sim/schedulers/record.h"
#include "sim/schedulers/replay.h"
#include "tests/sim/toy_world.h"

namespace zeroproof {
namespace {

bool contains(const KeptParts& kept, const std::set<std::size_t>& parts) {
  return std::includes(kept.begin(), kept.end(), parts.begin(), parts.end());
}

RC_GTEST_PROP(MinimizeParts, Keeps_exactly_what_the_failure_needs, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 60);
  const auto needed =
      *rc::gen::container<std::set<std::size_t>>(rc::gen::inRange<std::size_t>(0, count));
  const auto result =
      minimize_parts(count, [&](const KeptParts& kept) { return contains(kept, needed); });
  RC_ASSERT(result.kept == KeptParts(needed.begin(), needed.end()));
  RC_ASSERT(result.stats.is_minimal);
}

// A failure that is not monotone: either of two sets is enough, and part 0 hides the second.
RC_GTEST_PROP(MinimizeParts, Ends_where_no_single_part_can_go, ()) {
  const auto any_set =
      rc::gen::container<std::set<std::size_t>>(rc::gen::inRange<std::size_t>(0, 20));
  const auto first = *any_set, second = *any_set;
  const auto fails = [&](const KeptParts& kept) {
    return contains(kept, first) || (contains(kept, second) && !contains(kept, {0}));
  };
  const auto result = minimize_parts(20, fails);
  RC_ASSERT(fails(result.kept));
  for (const std::size_t part : result.kept) {
    KeptParts fewer = result.kept;
    fewer.erase(std::find(fewer.begin(), fewer.end(), part));
    RC_ASSERT_FALSE(fails(fewer));
  }
}

TEST(MinimizeParts, Needs_few_tests_for_one_guilty_part_among_many) {
  const auto result =
      minimize_parts(1024, [](const KeptParts& kept) { return contains(kept, {700}); });
  EXPECT_EQ(result.kept, KeptParts{700});
  EXPECT_LE(result.stats.tests, 60u);
}

TEST(MinimizeParts, Stops_at_its_budget_with_something_that_still_fails) {
  std::uint64_t calls = 0;
  const auto fails = [&](const KeptParts& kept) {
    ++calls;
    return contains(kept, {1, 33, 62});
  };
  const auto result = minimize_parts(64, fails, {.tests = 5});
  EXPECT_FALSE(result.stats.is_minimal);
  EXPECT_EQ(result.stats.tests, 6u);
  EXPECT_EQ(calls, 6u);
  EXPECT_TRUE(contains(result.kept, {1, 33, 62}));
}

TEST(MinimizeParts, Refuses_a_failure_that_does_not_come_back) {
  int calls = 0;
  EXPECT_THROW(minimize_parts(8, [&](const KeptParts&) { return ++calls == 1; }), CheckFailed);
}

TEST(Minimize, Takes_the_first_smaller_case_that_fails_until_none_does) {
  const auto halves_and_one_less = [](int n) { return std::vector<int>{n / 2, n - 1}; };
  const auto result = minimize(1000, halves_and_one_less, [](int n) { return n >= 37 && n > 0; });
  EXPECT_EQ(result.value, 37);
  EXPECT_TRUE(result.stats.is_minimal);
  EXPECT_EQ(result.stats.steps, 4u + (62 - 37));  // 500, 250, 125, 62, then one by one
}

TEST(Minimize, Runs_the_result_again) {
  int calls = 0;
  const auto flaky = [&](int) { return ++calls == 1; };
  EXPECT_THROW(minimize(
                   4, [](int n) { return std::vector<int>{n - 1}; }, flaky),
               CheckFailed);
}

TEST(SimplerChoices, Are_never_the_same_and_never_larger) {
  const Choices choices = {0, 3, 0, 1};
  const auto simpler = simpler_choices(choices);
  EXPECT_EQ(simpler.front(), (Choices{0, 0, 0, 0}));
  EXPECT_EQ(simpler.back(), (Choices{0, 2, 0, 1}));
  for (const Choices& candidate : simpler) EXPECT_LT(candidate, choices);
  EXPECT_TRUE(simpler_choices({0, 0}).empty());
}

// The choices as they were made, when the world falsifies something with them.
std::optional<Choices> failing_choices(const RunFunction& world, const Choices& choices) {
  ReplayScheduler replay(choices, ReplayFit::lenient);
  const auto result = explore(world, replay, {});
  if (result.findings.empty()) return {};
  return result.findings[0].first.choices;
}

TEST(SimplerChoices, Shrink_a_failing_schedule_to_a_least_one) {
  // Fails when event 5 runs after event 0 and before event 2.
  const toy::MonitoredPoset world{toy::antichain(6), {0, 0, 0, 0, 0, 2}};
  const auto fails = [&](const Choices& choices) {
    return failing_choices(world, choices).has_value();
  };
  const Choices start = {4, 0, 3, 2, 1};  // 4 0 5 3 2 1
  ASSERT_TRUE(fails(start));
  const auto result = minimize(start, simpler_choices, fails);
  EXPECT_EQ(failing_choices(world, result.value), (Choices{0, 0, 3, 0, 0}));  // 0 1 5 2 3 4
}

}  // namespace
}  // namespace zeroproof
