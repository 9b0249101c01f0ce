// The real engine in the simulated world, in many orders.
#include "props/train/engine_exploration.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "props/report/engine_report.h"
#include "props/train/case_minimizer.h"
#include "props/train/engine_replay.h"

namespace zeroproof::train {
namespace {

EngineCase case_with(const std::string& scenario, const CaseSettings& settings) {
  auto engine_case = case_of(scenario, settings, "test");
  EXPECT_TRUE(engine_case) << engine_case.error().text;
  return *engine_case;
}

// As the tests do it by default: every execution twice.
EngineExplorationReport explored(const EngineCase& engine_case, std::uint64_t executions,
                                 const std::string& scheduler = "random", bool minimizes = true) {
  EngineExplorationOptions options;
  options.engine_case = engine_case;
  options.scheduler = scheduler;
  options.seed = 0;
  options.budget.executions = 2 * executions;
  options.runs_twice = true;
  options.minimizes = minimizes;
  auto report = explore_engine(options);
  EXPECT_TRUE(report) << report.error().text;
  EXPECT_EQ("", report->divergence);
  return std::move(*report);
}

std::string text_of(const EngineExplorationReport& report) {
  return engine_exploration_text({report, 0.0}, Palette());
}

// A part of all scenarios, stages and backwards; tests/nightly has every one. Stage 3 releases what
// other orders of nodes than PyTorch's may still need.
TEST(EngineExploration, Order_tokens_and_all_numbers_equal_those_of_the_host_runtime) {
  std::uint64_t cells = 0;
  std::uint64_t seed = 0;
  for (const TrainScenario& scenario : scenario_catalogue()) {
    const std::uint64_t turn = cells++;
    const bool is_shared = turn % 4 != 3 && turn % 8 < 4;
    const CaseSettings settings = {{"stage", std::to_string(turn % 4)},
                                   {"backward", turn % 3 == 0 ? "tensor" : "engine"},
                                   {"preemption", turn % 5 == 0 ? "blocked" : "every-call"},
                                   {"nodes", is_shared ? "shared" : "faithful"},
                                   {"steps", "2"},
                                   {"judge", "host"}};
    EngineExplorationOptions options;
    options.engine_case = case_with(std::string(scenario.name), settings);
    if (!is_applicable(scenario, options.engine_case.cell)) continue;
    options.seed = ++seed;
    options.budget.executions = 2;
    options.runs_twice = true;
    const auto report = explore_engine(options);
    ASSERT_TRUE(report);
    EXPECT_EQ(ExplorationStatus::held, status_of(*report)) << text_of(*report);
  }
  EXPECT_GT(seed, 30U);
}

TEST(EngineExploration, Exact_holds_in_every_order_of_a_small_cell) {
  const EngineCase small = case_with("plain", {{"stage", "2"}, {"steps", "1"}});
  for (const char* scheduler : {"random", "pct:2"}) {
    const EngineExplorationReport report = explored(small, 10, scheduler);
    EXPECT_EQ(ExplorationStatus::held, status_of(report)) << text_of(report);
    EXPECT_EQ(1U, report.results);
    EXPECT_EQ(20U, report.executions);
  }
}

TEST(EngineExploration, Pct_states_its_bound) {
  const EngineExplorationReport report =
      explored(case_with("plain", {{"stage", "1"}, {"steps", "1"}}), 10, "pct:1");
  ASSERT_TRUE(report.certificate);
  EXPECT_EQ(1, report.certificate->depth);
  EXPECT_GT(report.certificate->tasks, 1U);
  EXPECT_LT(report.certificate->miss_chance(), 1.0);
}

TEST(EngineExploration, A_cell_that_is_refused_as_documented_holds) {
  const EngineExplorationReport report =
      explored(case_with("plain", {{"stage", "0"}, {"backward", "tensor"}}), 2);
  EXPECT_EQ("manual_backward_unsupported", report.refusal);
  EXPECT_EQ(ExplorationStatus::held, status_of(report)) << text_of(report);
}

// Ranks that order their nodes apart reduce different parameters together.
TEST(EngineExploration, A_hazard_of_order_is_found_minimised_and_replayed) {
  const CaseSettings settings = {{"stage", "2"}, {"nodes", "each"}};
  const EngineCase engine_case = case_with("reentrant", settings);
  const EngineExplorationReport report = explored(engine_case, 20);
  ASSERT_EQ(1U, report.findings.size()) << text_of(report);
  const EngineFinding& finding = report.findings.front();
  EXPECT_EQ("collective_mismatch", finding.finding.kind);
  EXPECT_GT(finding.failing_executions, 0U);
  EXPECT_LE(finding.events, finding.events_before);
  const auto replay = replay_engine("test", finding.minimized, Beside::nothing);
  ASSERT_TRUE(replay);
  EXPECT_TRUE(replay->is_reproduced());
  EXPECT_EQ("", replay->divergence);
  Schedule promised_nothing = finding.minimized;
  promised_nothing.settings["found"] = "none";
  EXPECT_FALSE(replay_engine("test", promised_nothing, Beside::nothing)->is_reproduced());
}

// What a hook policy or a hazard does wrong in some orders of nodes only, and exact in none.
TEST(EngineExploration, Hazards_that_depend_on_the_order_of_nodes_are_found_and_exact_has_none) {
  struct Hazard {
    const char* key;
    const char* value;
    const char* backward;
    const char* stage;
  };
  for (const Hazard& hazard :
       {Hazard{"quirks", "h1", "engine", "2"}, Hazard{"policy", "deepspeed-0.18.3", "tensor", "1"},
        Hazard{"policy", "deepspeed-0.18.3", "tensor", "2"}}) {
    CaseSettings settings = {
        {"stage", hazard.stage}, {"backward", hazard.backward}, {"nodes", "shared"}};
    const EngineExplorationReport exact = explored(case_with("exception", settings), 20);
    EXPECT_EQ(ExplorationStatus::held, status_of(exact)) << text_of(exact);
    settings[hazard.key] = hazard.value;
    const EngineExplorationReport found =
        explored(case_with("exception", settings), 20, "random", false);
    ASSERT_EQ(1U, found.findings.size()) << hazard.value;
    EXPECT_EQ("different", found.findings.front().finding.kind);
    EXPECT_LT(found.findings.front().failing_executions, found.executions);
  }
}

// As Ctrl-C does: every rank unwinds, wherever it stands.
TEST(EngineExploration, An_execution_can_be_cut_at_any_choice) {
  EngineExplorationOptions options;
  options.engine_case = case_with("plain", {{"stage", "3"}, {"steps", "1"}});
  options.minimizes = false;
  for (std::uint64_t choices = 1; choices < 420; choices += 3) {
    options.budget.steps = choices;
    const auto report = explore_engine(options);
    ASSERT_TRUE(report);
    EXPECT_EQ(ExploreEnd::budget, report->end);
    EXPECT_TRUE(report->findings.empty()) << text_of(*report);
  }
}

// A rank that unwinds with a gather half finished used to look for the rest of it forever.
TEST(EngineExploration, A_rank_that_fails_within_a_gather_ends) {
  EngineExplorationOptions options;
  options.engine_case =
      case_with("leaf_without_grad", {{"stage", "3"}, {"quirks", "h24"}, {"nodes", "shared"}});
  options.budget.executions = 12;
  options.minimizes = false;
  const auto report = explore_engine(options);
  ASSERT_TRUE(report);
  EXPECT_EQ(12U, report->executions);
}

TEST(EngineExploration, Settings_of_a_case_lead_back_to_it) {
  const CaseSettings settings = {
      {"stage", "3"},       {"world-size", "4"}, {"dtype", "bf16"},         {"backward", "tensor"},
      {"quirks", "h3,h16"}, {"nodes", "each"},   {"preemption", "blocked"}, {"judge", "events"}};
  EXPECT_EQ(settings, settings_of(case_with("two_losses", settings)));
  const auto wrong = case_of("plain", {{"stage", "4"}}, "explore");
  ASSERT_FALSE(wrong);
  EXPECT_EQ("explore: stage '4': give 0 to 3", wrong.error().text);
}

}  // namespace
}  // namespace zeroproof::train
