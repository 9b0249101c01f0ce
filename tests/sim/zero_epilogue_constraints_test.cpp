// The orders that a counterexample is printed with, against every schedule of tiny instances.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "sim/zero_epilogue/constraints.h"
#include "sim/zero_epilogue/world.h"

namespace zeroproof::zero_epilogue {
namespace {

using Names = std::vector<std::string>;  // of the events of one schedule, in their order

std::string name_of(const Event& event, const RankState& before) {
  const std::string name = event_text(event, before) + " in pass " + std::to_string(before.pass);
  const EventKind kind = event.what.kind;
  const bool is_epilogue = kind == EventKind::counter || kind == EventKind::callback;
  return is_epilogue ? name + " behind " + std::to_string(before.epilogues) : name;
}

struct Schedule {
  Names names;
  Property violated = Property::none;
};

std::vector<Schedule> all_schedules(const RankRules& rules) {
  std::vector<Schedule> all;
  Names names;
  const std::function<void(const World&)> walk = [&](const World& world) {
    const unsigned count = world.enabled_count();
    if (count == 0) all.push_back({names, world.has_finished() ? Property::none : Property::a5});
    for (unsigned index = 0; index < count; ++index) {
      const Event event = world.enabled_event(index);
      names.push_back(name_of(event, world.state(event.rank)));
      World next = world;
      const Property violated = next.step(event);
      if (violated == Property::none) {
        walk(next);
      } else {
        all.push_back({names, violated});
      }
      names.pop_back();
    }
  };
  walk(World(rules));
  return all;
}

bool keeps(const Names& names, const OrderConstraint& one) {
  const auto first = std::ranges::find(names, name_of(one.first.event, one.first.before));
  const auto second = std::ranges::find(names, name_of(one.second.event, one.second.before));
  return second == names.end() || first < second;
}

// Whether all schedules that keep the constraints, but for the one left out, violate the property.
bool suffices(const std::vector<Schedule>& all, const std::vector<OrderConstraint>& constraints,
              Property property, std::size_t left_out) {
  return std::ranges::all_of(all, [&](const Schedule& schedule) {
    for (std::size_t i = 0; i < constraints.size(); ++i)
      if (i != left_out && !keeps(schedule.names, constraints[i])) return true;
    return schedule.violated == property;
  });
}

struct Tiny {
  std::vector<std::string> words;
  std::size_t constraints;
};

class LeastConstraints : public ::testing::TestWithParam<Tiny> {};

TEST_P(LeastConstraints, Suffice_and_none_can_be_left_out) {
  const Ranks ranks = std::move(Ranks::make(parse_settings(GetParam().words).value()).value());
  const std::vector<Schedule> all = all_schedules(ranks.rules());
  const ReducedResult found = search_reduced(ranks);
  ASSERT_FALSE(found.counterexamples.empty());
  const Counterexample& failing = found.counterexamples.front();
  const auto least = least_constraints(ranks, failing);
  ASSERT_TRUE(least.has_value()) << property_name(failing.property);
  const auto& constraints = least->constraints;
  Names texts;
  for (const auto& one : constraints)
    texts.push_back(constraint_text(ranks.rules().settings(), one));
  EXPECT_EQ(constraints.size(), GetParam().constraints) << ::testing::PrintToString(texts);
  EXPECT_TRUE(least->is_least);
  EXPECT_TRUE(suffices(all, constraints, failing.property, constraints.size()))
      << ::testing::PrintToString(texts);
  for (std::size_t i = 0; i < constraints.size(); ++i)
    EXPECT_FALSE(suffices(all, constraints, failing.property, i)) << texts[i];
}

INSTANTIATE_TEST_SUITE_P(
    Defects, LeastConstraints,
    ::testing::Values(Tiny{{"P=1", "N=2", "defect=M1"}, 1}, Tiny{{"P=1", "N=1", "defect=M2"}, 1},
                      Tiny{{"P=1", "N=3", "defect=M3"}, 1}, Tiny{{"P=1", "N=2", "defect=M4"}, 1},
                      Tiny{{"P=1", "N=1", "defect=M6"}, 0},
                      Tiny{{"P=1", "N=1", "K=2", "defect=M7"}, 1},
                      Tiny{{"P=1", "N=1", "defect=M8"}, 1}, Tiny{{"P=1", "N=3", "defect=M9"}, 2},
                      Tiny{{"P=1", "N=4", "B=3", "defect=M9"}, 3}),
    [](const auto& given) { return "row" + std::to_string(given.index); });

// Too many schedules to run them all.
TEST(OrderConstraints, Of_buckets_that_fill_in_different_orders_are_one_a_rank) {
  const Settings settings = parse_settings(Names{"P=2", "N=2", "B=1", "defect=M5"}).value();
  const Ranks ranks = std::move(Ranks::make(settings).value());
  const auto least = least_constraints(ranks, search_reduced(ranks).counterexamples.front());
  ASSERT_TRUE(least.has_value());
  Names texts;
  for (const auto& one : least->constraints) texts.push_back(constraint_text(settings, one));
  EXPECT_EQ(texts, (Names{"hook 0 on rank 0 before hook 1 on rank 0",
                          "hook 1 on rank 1 before hook 0 on rank 1"}));
  EXPECT_TRUE(least->is_least);
}

TEST(OrderConstraints, Of_too_many_states_are_left_alone) {
  const Ranks ranks =
      std::move(Ranks::make(parse_settings(Names{"P=2", "N=5", "defect=M9"}).value()).value());
  const ReducedResult found = search_reduced(ranks);
  EXPECT_FALSE(least_constraints(ranks, found.counterexamples.front(), 100).has_value());
}

}  // namespace
}  // namespace zeroproof::zero_epilogue
