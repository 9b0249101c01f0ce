// What an exploration of the engine says it has seen, and that workers and shards see the same.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "props/report/engine_report.h"
#include "props/train/engine_exploration.h"
#include "props/train/transform_watch.h"

namespace zeroproof::train {
namespace {

EngineExplorationOptions options_for(const std::string& scenario, const CaseSettings& settings,
                                     std::uint64_t executions) {
  EngineExplorationOptions options;
  auto made = case_of(scenario, settings, "test");
  EXPECT_TRUE(made) << made.error().text;
  options.engine_case = *made;
  options.budget.executions = executions;
  return options;
}

EngineExplorationReport run_of(const EngineExplorationOptions& options) {
  auto report = explore_engine(options);
  EXPECT_TRUE(report) << report.error().text;
  return std::move(*report);
}

std::string page_of(const EngineExplorationReport& report) {
  return engine_exploration_text({report, 0.0}, Palette());
}

const SometimesCount* condition_of(const EngineExplorationReport& report, std::string_view name) {
  for (const SometimesCount& condition : report.sometimes)
    if (condition.name == name) return &condition;
  return nullptr;
}

struct Level {
  const char* scenario;
  std::string_view condition;
};

TEST(TransformLevels, Each_is_reached_at_every_stage_and_exact_holds) {
  const Level levels[] = {{"func_kd", kTransformInForward},
                          {"transform_in_recompute", kTransformInRecompute},
                          {"transform_in_tiles", kTransformInPreUserBackward},
                          {"transform_between_engines", kTransformBetweenEngines}};
  for (const Level& level : levels)
    for (const char* stage : {"0", "1", "2", "3"})
      for (const char* backward : {"engine", "tensor"}) {
        const auto report =
            run_of(options_for(level.scenario, {{"stage", stage}, {"backward", backward}}, 8));
        EXPECT_EQ(ExplorationStatus::held, status_of(report)) << page_of(report);
        const SometimesCount* const seen = condition_of(report, level.condition);
        ASSERT_TRUE(seen);
        EXPECT_TRUE(seen->is_required);
        EXPECT_TRUE(seen->executions == 8 || !report.refusal.empty()) << page_of(report);
      }
}

TEST(TransformLevels, A_condition_that_is_not_reached_is_no_proof) {
  auto report = run_of(options_for("func_kd", {{"stage", "2"}}, 2));
  ASSERT_EQ(ExplorationStatus::held, status_of(report));
  report.sometimes.front().executions = 0;
  EXPECT_EQ(ExplorationStatus::inconclusive, status_of(report));
  EXPECT_NE(std::string::npos, page_of(report).find("sometimes transform_in_forward: never"));
}

// The report but for the number of workers and shards.
std::string contents(const EngineExplorationReport& report) {
  return engine_exploration_json({{report, 0.0}}, report.options.seed);
}

TEST(EngineWorkers, Any_number_of_them_makes_the_same_report) {
  for (const bool is_twice : {false, true}) {
    auto options =
        options_for("reentrant", {{"stage", "2"}, {"nodes", "each"}, {"steps", "1"}}, 60);
    options.runs_twice = is_twice;
    const std::string alone = contents(run_of(options));
    for (const std::uint64_t workers : {2U, 3U, 7U}) {
      options.workers = workers;
      EXPECT_EQ(alone, contents(run_of(options))) << workers;
    }
  }
}

TEST(EngineWorkers, Shards_share_the_executions_out) {
  auto options = options_for("plain", {{"stage", "1"}, {"steps", "1"}, {"faults", "all"}}, 50);
  const EngineExplorationReport whole = run_of(options);
  std::uint64_t executions = 0;
  std::uint64_t events = 0;
  options.shards = 3;
  options.workers = 2;
  for (options.shard = 0; options.shard < options.shards; ++options.shard) {
    const EngineExplorationReport part = run_of(options);
    executions += part.executions;
    events += part.events;
  }
  EXPECT_EQ(whole.executions, executions);
  EXPECT_EQ(whole.events, events);
}

TEST(EngineWorkers, A_scheduler_that_learns_is_not_dealt_out) {
  auto options = options_for("plain", {{"stage", "1"}}, 4);
  options.workers = 2;
  options.scheduler = "pct:2";
  const auto report = explore_engine(options);
  ASSERT_FALSE(report);
  EXPECT_EQ(ErrorCode::usage, report.error().code);
}

TEST(EngineCoverage, Pairs_of_choices_are_seen_in_both_orders_and_classes_are_counted) {
  const auto report = run_of(options_for("plain", {{"stage", "2"}, {"steps", "1"}}, 40));
  ASSERT_EQ(1U, report.sites.size());
  const SiteCount& site = report.sites.front();
  EXPECT_EQ("world.next", site.site);
  EXPECT_GT(site.pairs, 0U);
  EXPECT_GT(site.pairs_in_both_orders, 0U);
  EXPECT_LE(site.pairs_in_both_orders, site.pairs);
  EXPECT_GT(report.classes, 0U);
  EXPECT_LE(report.classes, report.executions);
}

// However often it runs.
TEST(EngineCoverage, One_order_is_one_class) {
  auto options = options_for("plain", {{"stage", "3"}, {"steps", "1"}}, 3);
  options.scheduler = "fifo";
  const auto report = run_of(options);
  EXPECT_EQ(1U, report.classes);
  ASSERT_FALSE(report.sites.empty());
}

}  // namespace
}  // namespace zeroproof::train
