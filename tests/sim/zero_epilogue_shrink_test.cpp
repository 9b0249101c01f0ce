#include <gtest/gtest.h>

#include <map>
#include <pcg_random.hpp>

#include "sim/search/big_number.h"
#include "sim/zero_epilogue/full_search.h"
#include "sim/zero_epilogue/shrink.h"
#include "sim/zero_epilogue/token.h"
#include "sim/zero_epilogue/walker.h"
#include "sim/zero_epilogue/world.h"

namespace zeroproof::zero_epilogue {
namespace {

Settings with(const std::vector<std::string>& words) {
  return parse_settings(words).value();
}

// A random schedule that fails, the i-th of its kind.
Counterexample failing(const Settings& settings, std::uint64_t seed) {
  const auto found = walk(settings, {.seed = seed, .schedules = 1'000'000});
  return {found->first.value(), found->failing};
}

class ShrinkingOf : public ::testing::TestWithParam<std::string> {
 protected:
  Settings settings() const { return with({"P=2", "N=7", "K=2", "N1=3", "defect=" + GetParam()}); }
};

// K1, K3, K4, K5 of docs/spec/explorer.md 5.4, and T1 of 5.5: whatever schedule it starts from, the
// certified least number of events of its own property, always the same ones.
TEST_P(ShrinkingOf, Random_failures_ends_in_one_certified_minimum_a_property) {
  const Ranks ranks = std::move(Ranks::make(settings()).value());
  const auto least = search_all(ranks)->findings;
  std::array<std::vector<Event>, kProperties> ends;
  const std::uint64_t starts = 1'000;
  for (std::uint64_t seed = 0; seed < starts; ++seed) {
    const Counterexample start = failing(settings(), seed);
    const Shrunk shrunk = shrink(settings(), start);
    const Counterexample& end = shrunk.counterexample;
    ASSERT_EQ(end.property, start.property) << seed;
    ASSERT_EQ(end.events.size(), least.least_events(end.property)) << seed;
    ASSERT_LE(shrunk.executions, 300U) << seed;
    auto& known = ends[static_cast<std::size_t>(end.property)];
    if (known.empty()) known = end.events;
    ASSERT_EQ(end.events, known) << seed;
    const Token token = token_of(settings(), end.property, end.events);
    ASSERT_LE(token_text(token).size(), 64U) << token_text(token);
    const auto again = replay(parse_token(token_text(token)).value());
    ASSERT_EQ(again->violated, end.property);
    ASSERT_EQ(again->events, end.events);
  }
}

// K2: the instance too. docs/spec/explorer.md 1.3, column "smallest"; buckets of one hook make M5
// smaller than printed there.
TEST_P(ShrinkingOf, Settings_ends_in_the_smallest_instance) {
  const std::map<std::string, std::pair<Property, std::size_t>> printed = {
      {"M1", {Property::a2, 5}}, {"M2", {Property::a1, 5}}, {"M3", {Property::a2, 5}},
      {"M4", {Property::a3, 5}}, {"M5", {Property::a4, 8}}, {"M6", {Property::a3, 4}},
      {"M7", {Property::a5, 7}}, {"M8", {Property::a1, 5}}, {"M9", {Property::a3, 4}}};
  const auto& [property, events] = printed.at(GetParam());
  std::size_t met = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Counterexample start = failing(settings(), seed);
    if (start.property != property) continue;
    ++met;
    const Shrunk shrunk = shrink(settings(), start, {.shrinks_settings = true});
    ASSERT_LE(shrunk.counterexample.events.size(), events) << settings_text(shrunk.settings);
    ASSERT_LE(shrunk.executions, 2'000U);
    const Ranks ranks = std::move(Ranks::make(shrunk.settings).value());
    ASSERT_EQ(search_all(ranks)->findings.least_events(property),
              shrunk.counterexample.events.size());
  }
  EXPECT_GT(met, 0U);
}

INSTANTIATE_TEST_SUITE_P(Defects, ShrinkingOf,
                         ::testing::Values("M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "M9"),
                         [](const auto& given) { return given.param; });

TEST(ModelShrinking, Works_where_no_search_does) {
  const Settings settings = with({"P=4", "N=40", "B=8", "defect=M3"});
  const Shrunk shrunk = shrink(settings, failing(settings, 1));
  EXPECT_EQ(shrunk.counterexample.property, Property::a2);
  EXPECT_LE(shrunk.counterexample.events.size(), 30U);
}

TEST(ModelLenientRun, Says_which_event_had_to_change) {
  const RankRules rules(with({"P=1", "N=2", "B=2"}));
  const auto hook = [](unsigned number) {
    return Event{0, {EventKind::hook, static_cast<std::uint8_t>(number)}};
  };
  const std::vector<Event> possible = {{0, {EventKind::choose_callback}}, hook(1), hook(0)};
  const ScheduleRun good = run_leniently(rules, possible, AtEnd::run_on);
  EXPECT_FALSE(good.first_changed.has_value());
  EXPECT_EQ(good.violated, Property::none);
  EXPECT_EQ(good.events.size(), 7U);
  const std::vector<Event> twice = {{0, {EventKind::choose_callback}}, hook(1), hook(1), hook(0)};
  const ScheduleRun changed = run_leniently(rules, twice, AtEnd::run_on);
  EXPECT_EQ(changed.first_changed, 2U);
  EXPECT_EQ(changed.events, good.events);
}

// T1: 79 bits.
TEST(ModelTokens, Number_any_schedule_of_P2_N8_in_fourteen_digits) {
  const Settings settings = with({"P=2", "N=8"});
  const Ranks ranks = std::move(Ranks::make(settings).value());
  const auto counts = PathCounts::make(ranks);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    World world(ranks.rules());
    std::vector<Event> events;
    pcg32 random(seed);
    while (world.enabled_count() != 0) {
      events.push_back(world.enabled_event(random(world.enabled_count())));
      world.step(events.back());
    }
    const Token token = numbered_token(*counts, settings, Property::none, events);
    EXPECT_LE(token.order.size(), 14U);
    EXPECT_EQ(counts->schedule(*BigNumber::from_base64(token.order)->wide()), events);
    const Token by_choices = token_of(settings, Property::none, events);
    EXPECT_EQ(replay(by_choices)->events, events);
  }
}

TEST(ModelTokens, Are_read_back_or_refused) {
  Token token{.rules = rules_hash(),
              .settings = with({"P=3", "N=5", "B=3", "order=spine", "W=3", "late=1", "defect=M2"}),
              .order = "b-_9",
              .expected = Property::a1,
              .events = 12};
  const std::string text = token_text(token);
  EXPECT_EQ(token_text(parse_token(text).value()), text);
  EXPECT_EQ(parse_token(text)->settings, token.settings);
  for (const std::string bad : {"zpe2.AAAAA.P2.c.A1x1", "zpe1.AAAAA.P2.c", "zpe1.AAAAA.Q2.c.A1x1",
                                "zpe1.AAAAA.P2.c!.A1x1", "zpe1.AAAAA.P2..A1x1", "zpe1....."}) {
    EXPECT_FALSE(parse_token(bad).has_value()) << bad;
  }
}

// When this fails the rules have changed: put the new number into token.cpp, so that tokens made
// before are known to be of other rules.
TEST(ModelTokens, Name_the_rules_they_were_made_under) {
  EXPECT_EQ(rules_hash(), measured_rules_hash());
}

}  // namespace
}  // namespace zeroproof::zero_epilogue
