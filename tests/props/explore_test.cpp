// The public way to explore: the answers of the explorer in a few numbers.
#include "zeroproof/props/explore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace zeroproof {
namespace {

bool has_falsified(const ExploreAnswer& answer, std::string_view number) {
  return std::ranges::any_of(answer.verdicts, [&](const Verdict& verdict) {
    return verdict.property->number == number && verdict.status == Status::falsified;
  });
}

TEST(Explore, Judges_every_order_under_a_policy) {
  const auto exact = explore_every_order({.scenario = "S2"});
  ASSERT_TRUE(exact) << exact.error().text;
  EXPECT_TRUE(exact->has_held);
  EXPECT_LT(1U, exact->executions);
  const auto upstream = explore_every_order({.scenario = "S2", .policy = "deepspeed-0.18.3"});
  ASSERT_TRUE(upstream) << upstream.error().text;
  EXPECT_FALSE(upstream->has_held);
  EXPECT_TRUE(has_falsified(*upstream, "P2"));
  EXPECT_FALSE(has_falsified(*exact, "P2"));
}

TEST(Explore, Says_that_orders_are_left) {
  const auto cut = explore_every_order({.scenario = "S2", .executions_max = 1});
  ASSERT_TRUE(cut) << cut.error().text;
  EXPECT_EQ(1U, cut->executions);
  EXPECT_FALSE(cut->has_held);
}

TEST(Explore, Refuses_what_it_does_not_know) {
  EXPECT_FALSE(explore_every_order({.scenario = "no such scenario"}));
  EXPECT_FALSE(explore_every_order({.scenario = "S2", .policy = "no such policy"}));
  EXPECT_FALSE(explore_every_order({.scenario = "S2", .parameters = 3}));
}

}  // namespace
}  // namespace zeroproof
