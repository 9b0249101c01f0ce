// Which properties the numbers of a training run speak about, and what they say.
#include "props/train_properties.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace zeroproof {
namespace {

std::set<std::string> numbers(const TrainFacts& facts, Status status) {
  std::set<std::string> found;
  for (const Verdict& verdict : judge_training(facts)) {
    EXPECT_EQ(verdict.reason.empty(), verdict.status != Status::not_applicable);
    EXPECT_EQ(verdict.findings.empty(), verdict.status != Status::falsified);
    if (verdict.status == status) found.insert(std::string(verdict.property->number));
  }
  return found;
}

TEST(TrainProperties, Speak_only_where_the_run_could_tell) {
  TrainFacts plain{.scenario = "plain", .stage = 2};
  plain.is_equal = true;
  EXPECT_EQ(numbers(plain, Status::held), std::set<std::string>{"P26"});
  TrainFacts unused = plain;
  unused.scenario = "unused";
  unused.gradient_accumulation_steps = 2;
  EXPECT_EQ(numbers(unused, Status::held),
            (std::set<std::string>{"P19", "P27", "P31", "P32", "P39"}));
}

TEST(TrainProperties, Are_falsified_by_a_difference) {
  TrainFacts tiled{.scenario = "tiled", .stage = 3, .difference = "l1.weight: 4 ulps"};
  tiled.is_equal = false;
  EXPECT_EQ(numbers(tiled, Status::falsified), (std::set<std::string>{"P26", "P37"}));
  tiled.is_equal.reset();
  EXPECT_TRUE(numbers(tiled, Status::falsified).empty());
}

TEST(TrainProperties, Judge_ranks_and_counts_by_their_own_facts) {
  TrainFacts facts{.scenario = "plain", .stage = 1, .world_size = 2};
  facts.is_equal = true;
  facts.has_equal_ranks = false;
  facts.has_equal_step_counts = true;
  EXPECT_EQ(numbers(facts, Status::falsified), std::set<std::string>{"P40"});
  EXPECT_EQ(numbers(facts, Status::held), (std::set<std::string>{"P26", "P61"}));
  facts.has_equal_step_counts = false;
  EXPECT_EQ(numbers(facts, Status::falsified), (std::set<std::string>{"P40", "P61"}));
}

TEST(TrainProperties, Judge_refusals_orders_and_returned_losses_where_a_run_has_them) {
  TrainFacts facts{.scenario = "two_engines",
                   .stage = 2,
                   .is_scaled = true,
                   .refusal = "backward_without_loss_scaling"};
  EXPECT_TRUE(numbers(facts, Status::held).empty());
  facts.was_refused = true;
  EXPECT_EQ(numbers(facts, Status::held), std::set<std::string>{"P24"});
  facts.was_refused = false;
  facts.has_equal_orders = false;
  EXPECT_EQ(numbers(facts, Status::falsified), (std::set<std::string>{"P24", "P38"}));
  TrainFacts leaf{.scenario = "leaf_without_grad", .stage = 3, .refusal = "gradient_of_wrong_size"};
  leaf.was_refused = true;
  EXPECT_EQ(numbers(leaf, Status::held), std::set<std::string>{"P77"});
  TrainFacts argument{.scenario = "scale_argument", .stage = 1, .gradient_accumulation_steps = 2};
  argument.is_equal = true;
  EXPECT_EQ(numbers(argument, Status::held),
            (std::set<std::string>{"P19", "P20", "P21", "P27", "P39"}));
}

}  // namespace
}  // namespace zeroproof
