#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "sim/zero_epilogue/coverage.h"
#include "sim/zero_epilogue/full_search.h"
#include "sim/zero_epilogue/walker.h"
#include "sim/zero_epilogue/world.h"

namespace zeroproof::zero_epilogue {
namespace {

Ranks instance(const std::vector<std::string>& words) {
  return std::move(Ranks::make(parse_settings(words).value()).value());
}

Coverage after_random(const Ranks& ranks, std::uint64_t schedules) {
  Coverage coverage = std::move(Coverage::make(ranks).value());
  const auto walked = walk(ranks.rules().settings(),
                           {.seed = 1,
                            .schedules = schedules,
                            .stops_at_first_finding = false,
                            .on_schedule = [&](const auto& events) { coverage.add(events); }});
  EXPECT_EQ(walked->schedules, schedules);
  return coverage;
}

// Every schedule of a tiny instance shows every state and every feasible order of two events.
TEST(ModelCoverage, Is_complete_after_all_schedules_and_not_before) {
  for (const auto& words : {std::vector<std::string>{"P=1", "N=4"},
                            {"P=1", "N=3", "K=2"},
                            {"P=1", "N=4", "order=spine"},
                            {"P=1", "N=3", "late=1"},
                            {"P=2", "N=2", "B=2"},
                            {"P=1", "N=4", "defect=M3"}}) {
    const Ranks ranks = instance(words);
    Coverage coverage = std::move(Coverage::make(ranks).value());
    std::vector<Event> events;
    const std::function<void(const World&)> walk_all = [&](const World& world) {
      const unsigned count = world.enabled_count();
      if (count == 0) return coverage.add(events);
      for (unsigned index = 0; index < count; ++index) {
        World next = world;
        events.push_back(world.enabled_event(index));
        if (next.step(events.back()) == Property::none) {
          walk_all(next);
        } else {
          coverage.add(events);
        }
        events.pop_back();
      }
    };
    const CoverageCounts none = coverage.counts();
    EXPECT_EQ(none.states, 0U);
    EXPECT_EQ(none.pair_orders, 0U);
    walk_all(World(ranks.rules()));
    const CoverageCounts all = coverage.counts();
    EXPECT_EQ(all.states, *all.all_states) << words.back();
    EXPECT_EQ(all.pair_orders, all.feasible_pair_orders) << words.back();
    EXPECT_GT(all.pair_orders, 0U);
    EXPECT_EQ(all.pairs_both_ways, all.feasible_pairs) << words.back();
    EXPECT_EQ(all.triples, all.feasible_triples) << words.back();
    EXPECT_GT(all.triples.value_or(0), 0U);
  }
}

// C2: 20,000 schedules. C1: all feasible orders of conflicting events.
TEST(ModelCoverage, Of_20000_random_schedules_hits_every_probe_and_every_pair_order) {
  for (const auto& words : {std::vector<std::string>{"P=2", "N=5", "K=2"},
                            {"P=3", "N=5"},
                            {"P=2", "N=5", "late=1"},
                            {"P=2", "N=7", "order=spine"}}) {
    const Ranks ranks = instance(words);
    const Coverage coverage = after_random(ranks, 20'000);
    for (const Probe& probe : coverage.probes()) EXPECT_GT(probe.hits, 0U) << probe.name;
    const CoverageCounts counts = coverage.counts();
    EXPECT_EQ(counts.pair_orders, counts.feasible_pair_orders) << words.back();
    EXPECT_EQ(counts.pairs_both_ways, counts.feasible_pairs) << words.back();
    EXPECT_GE(static_cast<double>(*counts.triples),
              0.99 * static_cast<double>(*counts.feasible_triples))
        << words.back();
    EXPECT_LE(counts.states, *counts.all_states);
  }
}

TEST(ModelCoverage, Leaves_out_probes_that_the_settings_exclude) {
  const auto names = [](const std::vector<std::string>& words) {
    const Ranks ranks = instance(words);
    const Coverage coverage = std::move(Coverage::make(ranks).value());
    std::set<std::string_view> found;
    for (const Probe& probe : coverage.probes()) found.insert(probe.name);
    return found;
  };
  EXPECT_FALSE(names({"P=1", "N=4"}).contains("both_interfaces"));
  EXPECT_FALSE(names({"P=1", "N=4"}).contains("flush"));
  EXPECT_TRUE(names({"P=2", "N=5", "K=2", "late=1"}).contains("passes_apart"));
}

}  // namespace
}  // namespace zeroproof::zero_epilogue
