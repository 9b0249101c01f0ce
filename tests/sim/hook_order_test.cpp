#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sim/explorer.h"
#include "sim/hook_order/run.h"
#include "sim/hook_order/search.h"
#include "sim/schedulers/exhaustive.h"
#include "sim/schedulers/random.h"

namespace zeroproof::hook_order {
namespace {

using Words = std::vector<std::string>;

Words split(const std::string& text) {
  Words words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

Settings settings_of(const std::string& text) {
  const auto settings = parse_settings(split(text));
  EXPECT_TRUE(settings.has_value()) << text;
  return settings.value_or(Settings{});
}

std::set<Property> properties_of(const SearchResult& found) {
  std::set<Property> properties;
  for (const Finding& finding : found.findings) properties.insert(finding.property);
  return properties;
}

// --- work counts -------------------------------------------------------------------------------

struct Counts {
  std::string settings;
  bool is_reduced;
  std::uint64_t states;
  std::uint64_t transitions;
  std::uint64_t executions;
};

class HookOrderCounts : public ::testing::TestWithParam<Counts> {};

TEST_P(HookOrderCounts, Are_what_they_were_and_the_engines_are_made_once) {
  World world(settings_of(GetParam().settings));
  const SearchResult found = search(world, {.is_reduced = GetParam().is_reduced});
  EXPECT_TRUE(found.has_exhausted);
  EXPECT_EQ(found.divergence, "");
  EXPECT_TRUE(found.findings.empty());
  EXPECT_EQ(found.states, GetParam().states);
  EXPECT_EQ(found.transitions, GetParam().transitions);
  EXPECT_EQ(found.executions, GetParam().executions);
  EXPECT_EQ(world.engines_made(), 1U);
}

INSTANTIATE_TEST_SUITE_P(
    Instances, HookOrderCounts,
    ::testing::Values(Counts{"P=1 N=4 stage=1", true, 17, 33, 18},
                      Counts{"P=2 N=4 stage=1", true, 37, 70, 35},
                      Counts{"P=2 N=4 stage=1", false, 295, 1130, 837},
                      Counts{"P=2 N=6 stage=1", false, 4234, 25102, 20870},
                      Counts{"P=2 N=4 stage=2 order=same", true, 226, 248, 24},
                      Counts{"P=2 N=4 stage=2 order=same", false, 1286, 2896, 1612},
                      Counts{"P=2 N=4 stage=2 order=same overlap=1", false, 1286, 2896, 1612},
                      Counts{"P=2 N=4 stage=3 order=same overlap=1", true, 100, 116, 18},
                      Counts{"P=2 N=4 stage=3 order=same overlap=1", false, 776, 1672, 898},
                      Counts{"P=2 N=3 K=2 stage=1", false, 781, 2944, 2165},
                      Counts{"P=2 N=8 stage=1", true, 521, 2058, 1539}));

// --- the reduction -----------------------------------------------------------------------------

void agree(const std::string& text) {
  const Settings settings = settings_of(text);
  World world(settings);
  const SearchResult full = search(world, {.is_reduced = false});
  const SearchResult reduced = search(world, {.is_reduced = true});
  ASSERT_TRUE(full.has_exhausted && reduced.has_exhausted) << text;
  ASSERT_EQ(full.divergence + reduced.divergence, "") << text;
  EXPECT_LE(reduced.states, full.states) << text;
  ASSERT_EQ(properties_of(reduced), properties_of(full)) << text;
  for (std::size_t i = 0; i < full.findings.size(); ++i) {
    const std::size_t shortest = full.findings[i].moves.size();
    EXPECT_EQ(shortened(world, reduced.findings[i]).moves.size(), shortest)
        << text << ": " << property_name(full.findings[i].property);
  }
}

TEST(HookOrderReduction, Agrees_with_the_full_search_where_nothing_is_planted) {
  for (const std::string ranks : {"P=1", "P=2"})
    for (const std::string hooks : {" N=1", " N=2", " N=3", " N=4"})
      for (const std::string bucket : {" B=1", " B=2", " B=3"})
        for (const std::string order : {" order=any", " order=same"})
          for (const std::string stage : {" stage=1", " stage=1 overlap=1", " stage=2",
                                          " stage=2 overlap=1", " stage=3", " stage=3 overlap=1"}) {
            const bool is_large = ranks == "P=2" && hooks == " N=4" && bucket == " B=1";
            if (!is_large) agree(ranks + hooks + bucket + order + stage);
          }
  agree("P=2 N=5 stage=1");
  agree("P=2 N=5 stage=2 order=same");
  agree("P=2 N=5 stage=3 order=same overlap=1");
  agree("P=3 N=2 stage=1");
  agree("P=3 N=2 stage=2 order=same");
  agree("P=2 N=2 E=3 K=2 stage=2 order=same");
  agree("P=2 N=3 K=2 stage=3 order=same overlap=1");
}

TEST(HookOrderReduction, Agrees_with_the_full_search_where_something_is_planted) {
  for (const std::string fault :
       {"defect=lost_wait", "defect=lost_hook", "defect=split_task", "defect=double_hook",
        "K=2 quirks=h1", "K=2 quirks=h2", "K=2 quirks=h3", "K=2 quirks=h4"})
    for (const std::string stage :
         {" stage=1", " stage=1 overlap=1", " stage=2 order=same", " stage=2 order=same overlap=1",
          " stage=3 order=same overlap=1"})
      for (const std::string size : {" P=1 N=3", " P=2 N=2", " P=2 N=3 B=1"}) {
        const bool is_large = fault.starts_with("K=2") && size.starts_with(" P=2 N=3");
        if (!is_large) agree(fault + stage + size);
      }
}

// The state and the violations after the moves; nullopt if one move is not possible.
std::optional<std::pair<Fingerprint, std::uint32_t>> after(World& world,
                                                           const std::vector<Move>& moves) {
  world.begin();
  bool is_possible = true;
  for (const Move& move : moves) {
    const auto enabled = world.enabled();
    is_possible = std::ranges::find(enabled, move) != enabled.end();
    if (!is_possible) break;
    world.take(move);
  }
  std::optional<std::pair<Fingerprint, std::uint32_t>> result;
  if (is_possible) result = {world.fingerprint(), world.violated().bits()};
  world.end();
  return result;
}

TEST(HookOrderIndependence, Holds_in_both_orders_wherever_it_is_declared) {
  std::uint64_t checked = 0;
  for (const std::string text :
       {"P=2 N=5 stage=1", "P=3 N=4 stage=2", "P=2 N=5 stage=2 order=same overlap=1",
        "P=2 N=4 K=2 stage=3 order=same overlap=1", "P=2 N=4 K=2 stage=1 overlap=1 order=same"}) {
    World world(settings_of(text));
    RandomScheduler random(7);
    for (int execution = 0; execution < 40; ++execution) {
      random.new_execution();
      const std::vector<Move> path = run(world, random, {.keeps_moves = true}).moves;
      for (std::size_t length = 0; length < path.size(); ++length) {
        const std::vector<Move> prefix(path.begin(),
                                       path.begin() + static_cast<std::ptrdiff_t>(length));
        world.begin();
        for (const Move& move : prefix) world.take(move);
        const auto enabled = world.enabled();
        const std::vector<Move> moves(enabled.begin(), enabled.end());
        const Move left = moves[length % moves.size()];
        const Move right = moves[(length * 7 + 3) % moves.size()];
        const bool is_declared = left != right && are_independent(world, left, right);
        world.end();
        if (!is_declared) continue;
        std::vector<Move> one = prefix;
        one.insert(one.end(), {left, right});
        std::vector<Move> other = prefix;
        other.insert(other.end(), {right, left});
        const auto first = after(world, one);
        const auto second = after(world, other);
        ASSERT_EQ(first.has_value(), second.has_value()) << text;
        if (!first) continue;
        ASSERT_EQ(first->second, second->second) << text;
        ASSERT_EQ(first->first, second->first)
            << text << ": " << world.name(left) << " and " << world.name(right) << " behind "
            << length << " moves";
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 1000U);
}

// --- what it finds -----------------------------------------------------------------------------

struct Fault {
  std::string settings;
  Property property;
  std::size_t moves;  // of the shortest run
};

class HookOrderFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(HookOrderFaults, Is_found_and_its_run_is_a_shortest_one) {
  World world(settings_of(GetParam().settings));
  const SearchResult found = search(world, {});
  ASSERT_TRUE(found.has(GetParam().property));
  const auto& finding = *std::ranges::find(found.findings, GetParam().property, &Finding::property);
  EXPECT_EQ(shortened(world, finding).moves.size(), GetParam().moves);
}

INSTANTIATE_TEST_SUITE_P(
    Planted, HookOrderFaults,
    ::testing::Values(Fault{"P=2 N=4 K=2 quirks=h2", Property::a1, 10},
                      Fault{"P=2 N=4 stage=2 order=same defect=split_task", Property::a2, 4},
                      Fault{"P=2 N=4 overlap=1 defect=lost_wait", Property::a3, 5},
                      Fault{"P=2 N=4 stage=2", Property::a4, 6},  // each rank in its own order
                      Fault{"P=2 N=2 B=1 stage=2 order=same defect=lost_hook", Property::a5, 7},
                      Fault{"P=2 N=2 K=2 stage=2 order=same quirks=h4", Property::a6, 15},
                      Fault{"P=2 N=2 K=2 stage=3 order=same overlap=1 quirks=h3", Property::a6, 15},
                      Fault{"P=2 N=4 stage=2 order=same quirks=h1", Property::a7, 1},
                      Fault{"P=2 N=2 B=1 stage=2 order=same quirks=h13 defect=double_hook",
                            Property::a8, 2}));

TEST(HookOrder, Ranks_that_reduce_at_the_end_may_each_have_their_own_order) {
  World world(settings_of("P=2 N=5 stage=1"));
  EXPECT_TRUE(search(world, {.is_reduced = false}).findings.empty());
}

TEST(HookOrder, A_scheduler_of_all_worlds_meets_the_same_states) {
  for (const std::string text : {"P=2 N=4 stage=1", "P=2 N=3 stage=2 order=same overlap=1"}) {
    World world(settings_of(text));
    const SearchResult full = search(world, {.is_reduced = false});
    ExhaustiveScheduler exhaustive;
    // A state with only one possible move is no choice, so those states are not met.
    const ExploreResult all = explore(
        [&](Chooser& chooser) {
          Outcome outcome;
          outcome.final_state = run(world, chooser, {.takes_final_state = true}).final_state;
          return outcome;
        },
        exhaustive, {});
    EXPECT_TRUE(all.has_covered_every_order());
    EXPECT_EQ(all.divergence, "");
    EXPECT_LT(*all.progress.scheduler.states, full.states);
    EXPECT_EQ(world.engines_made(), 1U);
  }
}

TEST(HookOrder, The_same_seed_gives_the_same_moves_in_a_world_that_has_run_before) {
  const Settings settings = settings_of("P=2 N=6 K=2 stage=3 order=same overlap=1");
  World used(settings);
  RandomScheduler before(1);
  for (int i = 0; i < 50; ++i) {
    before.new_execution();
    run(used, before);
  }
  World fresh(settings);
  RandomScheduler left(9);
  RandomScheduler right(9);
  for (int i = 0; i < 20; ++i) {
    left.new_execution();
    right.new_execution();
    const auto one = run(used, left, {.keeps_moves = true, .takes_final_state = true});
    const auto other = run(fresh, right, {.keeps_moves = true, .takes_final_state = true});
    EXPECT_EQ(one.moves, other.moves);
    EXPECT_EQ(one.final_state, other.final_state);
    EXPECT_EQ(one.violated, Property::none) << one.explanation;
  }
}

TEST(HookOrderSettings, Name_the_word_that_is_wrong) {
  for (const auto& [word, text] : std::vector<std::pair<std::string, std::string>>{
           {"P=9", "P is a number from 1 to 8"},
           {"stage=0", "stage is a number from 1 to 3"},
           {"order=some", "did you mean 'same'?"},
           {"quirks=h99", "unknown quirk 'h99'"},
           {"overlop=1", "did you mean 'overlap'?"}}) {
    const auto settings = parse_settings(Words{word});
    ASSERT_FALSE(settings.has_value()) << word;
    EXPECT_NE(settings.error().text.find(text), std::string::npos) << settings.error().text;
  }
  EXPECT_EQ(settings_text(settings_of("N=3 stage=2 quirks=h4 order=same")),
            "P=2 N=3 stage=2 order=same quirks=h4");
}

}  // namespace
}  // namespace zeroproof::hook_order
