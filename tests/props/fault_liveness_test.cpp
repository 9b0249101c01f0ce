// Faults strike, stop, and training converges to the baseline: whatever the kind, the place, the
// order of the ranks, the scenario and the stage.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "props/report/engine_report.h"
#include "props/train/case_runner.h"
#include "props/train/engine_exploration.h"
#include "props/train/engine_replay.h"
#include "props/train/fault_run.h"
#include "sim/schedulers/random.h"

namespace zeroproof::train {
namespace {

EngineCase fault_case(const std::string& scenario, const CaseSettings& settings) {
  auto made = case_of(scenario, settings, "test");
  EXPECT_TRUE(made) << made.error().text;
  return *made;
}

EngineExplorationReport explored_under(const EngineCase& engine_case, std::uint64_t executions,
                                       std::uint64_t seed) {
  EngineExplorationOptions options;
  options.engine_case = engine_case;
  options.seed = seed;
  options.budget.executions = executions;
  options.minimizes = false;
  auto report = explore_engine(options);
  EXPECT_TRUE(report) << report.error().text;
  return std::move(*report);
}

std::string told(const EngineExplorationReport& report) {
  return engine_exploration_text({report, 0.0}, Palette());
}

// A seeded part of all scenarios, stages, backwards and dtypes; tests/nightly has many more.
TEST(FaultLiveness, After_any_fault_every_scenario_and_stage_comes_back_to_the_baseline) {
  std::uint64_t turn = 0;
  for (const TrainScenario& scenario : scenario_catalogue())
    for (const int stage : {0, 1, 2, 3}) {
      ++turn;
      const EngineCase engine_case =
          fault_case(std::string(scenario.name), {{"stage", std::to_string(stage)},
                                                  {"backward", turn % 3 == 0 ? "tensor" : "engine"},
                                                  {"dtype", turn % 2 == 0 ? "fp16" : "float32"},
                                                  {"faults", "all"},
                                                  {"faults-max", turn % 5 == 0 ? "2" : "1"}});
      if (!is_applicable(scenario, engine_case.cell)) continue;
      const EngineExplorationReport report = explored_under(engine_case, 8, turn);
      EXPECT_TRUE(report.findings.empty()) << told(report);
      EXPECT_LE(report.results, 1U) << told(report);
    }
}

// Runs a case once for every place of every kind, in one order of the ranks. What was reached.
std::set<std::string> struck_everywhere(const EngineCase& engine_case) {
  auto runner = CaseRunner::create(engine_case);
  EXPECT_TRUE(runner);
  // Takes one place of one kind, and else the first option.
  class OnePlace final : public Chooser {
   public:
    std::size_t choose(const ChoicePoint& at) override {
      if (at.site == "fault.kind") {
        kinds = at.options.size() - 1;
        return kind;
      }
      if (at.site != "fault.event") return 0;
      places = at.options.size();
      return place;
    }
    std::size_t kind = 1;
    std::size_t place = 0;
    std::size_t kinds = 1;
    std::size_t places = 1;
  } chooser;
  std::set<std::string> struck;
  for (chooser.kind = 1; chooser.kind <= chooser.kinds; ++chooser.kind)
    for (chooser.place = 0, chooser.places = 1; chooser.place < chooser.places; ++chooser.place) {
      const CaseRun run = runner->run(chooser);
      EXPECT_TRUE(run.findings.empty()) << run.findings.front().text;
      struck.insert(run.reached.begin(), run.reached.end());
    }
  for (const std::string& name : runner->required()) EXPECT_TRUE(struck.contains(name)) << name;
  return struck;
}

class EveryFault : public ::testing::TestWithParam<int> {};

TEST_P(EveryFault, Leaves_nothing_behind) {
  const std::set<std::string> struck =
      struck_everywhere(fault_case("plain", {{"stage", std::to_string(GetParam())},
                                             {"dtype", "fp16"},
                                             {"steps", "1"},
                                             {"faults", "all"},
                                             {"preemption", "blocked"}}));
  EXPECT_EQ(sim::kFaultKinds + 3, struck.size());
  EXPECT_TRUE(struck.contains("window run again"));
  EXPECT_TRUE(struck.contains("checkpoint loaded"));
  EXPECT_TRUE(struck.contains("fresh world"));
}

INSTANTIATE_TEST_SUITE_P(Stages, EveryFault, ::testing::Values(0, 1, 2, 3),
                         [](const auto& given) { return "stage" + std::to_string(given.param); });

// Found by random executions: a rank that had no memory inside the block reduced what was there
// while the exception passed, and the others did not.
TEST(FaultLiveness, Nothing_is_reduced_by_a_block_in_which_one_rank_had_no_memory) {
  for (const char* stage : {"1", "2", "3"})
    struck_everywhere(fault_case(
        "coalesced",
        {{"stage", stage}, {"steps", "1"}, {"faults", "allocation"}, {"preemption", "blocked"}}));
}

// The same: a scaled backward that failed at its very first node let an unscaled one pass for it.
TEST(FaultLiveness, A_scale_goes_with_the_backward_that_failed) {
  for (const char* stage : {"1", "3"})
    struck_everywhere(fault_case("forgotten_scale", {{"stage", stage},
                                                     {"dtype", "fp16"},
                                                     {"backward", "tensor"},
                                                     {"steps", "1"},
                                                     {"faults", "exception"},
                                                     {"preemption", "blocked"}}));
}

// Every place in every order of ranks and streams, of the smallest program.
TEST(FaultSearch, Covers_every_place_in_every_order) {
  EngineExplorationOptions options;
  options.engine_case = fault_case("plain", {{"stage", "0"},
                                             {"steps", "1"},
                                             {"judge", "streams"},
                                             {"faults", "timeout,skipped_step,destroy"},
                                             {"preemption", "blocked"}});
  options.scheduler = "exhaustive";
  const auto report = explore_engine(options);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->findings.empty()) << told(*report);
  EXPECT_TRUE(report->has_exhausted) << told(*report);
  EXPECT_EQ(ExplorationStatus::held, status_of(*report)) << told(*report);
}

// What an exhaustive search came to, but for how much it took.
struct Searched {
  std::set<std::string> kinds;  // of findings
  std::set<std::string> reached;
  std::uint64_t results = 0;
  std::uint64_t ends = 0;
  std::uint64_t classes = 0;
  bool has_exhausted = false;
  friend bool operator==(const Searched&, const Searched&) = default;
};

Searched searched(const std::string& scenario, CaseSettings settings, const char* preemption,
                  std::uint64_t& states) {
  settings["judge"] = "streams";
  settings["preemption"] = preemption;
  EngineExplorationOptions options;
  options.engine_case = fault_case(scenario, settings);
  options.scheduler = "exhaustive";
  options.minimizes = false;
  const auto report = explore_engine(options);
  EXPECT_TRUE(report);
  Searched all{.results = report->results,
               .ends = report->ends,
               .classes = report->classes,
               .has_exhausted = report->has_exhausted};
  for (const EngineFinding& finding : report->findings) all.kinds.insert(finding.finding.kind);
  for (const SometimesCount& one : report->sometimes)
    if (one.executions > 0) all.reached.insert(one.name);
  states = report->states.value_or(0);
  return all;
}

// The reduction that lets queued work run as soon as it can, beside the search of all its orders.
TEST(FaultSearch, Of_ranks_alone_comes_to_what_the_search_of_all_orders_comes_to) {
  struct Row {
    const char* scenario;
    CaseSettings settings;
  };
  const std::vector<Row> rows = {
      {"plain", {{"stage", "0"}, {"steps", "1"}, {"faults", "timeout,destroy"}}},
      {"plain", {{"stage", "1"}, {"steps", "1"}, {"faults", "timeout,abort"}}},
      {"plain", {{"stage", "2"}, {"steps", "1"}, {"faults", "timeout,skipped_step"}}},
      {"plain", {{"stage", "2"}, {"steps", "1"}, {"faults", "overflow"}, {"dtype", "fp16"}}},
      {"plain", {{"stage", "1"}, {"steps", "1"}, {"faults", "exception"}, {"quirks", "h1"}}},
      {"plain", {{"stage", "2"}, {"steps", "1"}, {"compute", "late"}}},
      {"plain", {{"stage", "3"}, {"steps", "1"}}},
      {"two_losses", {{"stage", "2"}, {"steps", "1"}, {"quirks", "h4"}}}};
  for (const Row& row : rows) {
    std::uint64_t all = 0;
    std::uint64_t reduced = 0;
    const Searched full = searched(row.scenario, row.settings, "blocked", all);
    const Searched less = searched(row.scenario, row.settings, "ranks", reduced);
    const std::string told = row.scenario + (" stage " + row.settings.at("stage"));
    EXPECT_TRUE(full.has_exhausted) << told;
    EXPECT_EQ(full.kinds, less.kinds) << told;
    EXPECT_EQ(full.reached, less.reached) << told;
    EXPECT_EQ(full.results, less.results) << told;
    EXPECT_EQ(full.ends, less.ends) << told;
    EXPECT_EQ(full.classes, less.classes) << told;
    EXPECT_TRUE(full == less) << told;
    EXPECT_LT(reduced, all) << told;
  }
}

// A compute stream that lags does not change a result, with and without faults.
TEST(LateCompute, Leaves_every_stage_at_the_baseline) {
  for (const char* stage : {"0", "1", "2", "3"})
    for (const char* faults : {"", "all"}) {
      CaseSettings settings{{"stage", stage}, {"compute", "late"}};
      if (*faults != '\0') settings["faults"] = faults;
      for (const char* scenario : {"plain", "two_losses", "reentrant"}) {
        const EngineExplorationReport report =
            explored_under(fault_case(scenario, settings), 12, 3);
        EXPECT_TRUE(report.findings.empty()) << told(report);
        EXPECT_LE(report.results, 1U) << told(report);
      }
    }
}

// H1: what an aborted backward leaves. It shows under faults, and our engine does not leave it.
TEST(FaultLiveness, A_leak_after_an_abort_is_found_and_replayed) {
  EngineExplorationOptions options;
  options.engine_case =
      fault_case("plain", {{"stage", "2"}, {"quirks", "h1"}, {"faults", "exception"}});
  options.budget.executions = 60;
  const auto report = explore_engine(options);
  ASSERT_TRUE(report);
  ASSERT_FALSE(report->findings.empty()) << told(*report);
  const EngineFinding& finding = report->findings.front();
  EXPECT_NE(std::string::npos, finding.finding.text.find("after exception.all.")) << told(*report);
  const auto replay = replay_engine("test", finding.minimized, Beside::nothing);
  ASSERT_TRUE(replay);
  EXPECT_TRUE(replay->is_reproduced());
}

TEST(FaultLiveness, A_kind_that_has_no_place_is_not_planned) {
  const EngineExplorationReport report = explored_under(
      fault_case("plain", {{"stage", "2"}, {"faults", "overflow"}, {"dtype", "float32"}}), 3, 0);
  EXPECT_TRUE(report.sometimes.empty());
  EXPECT_EQ(ExplorationStatus::held, status_of(report));
}

TEST(FaultLiveness, What_did_not_strike_makes_an_exploration_inconclusive) {
  const EngineExplorationReport report =
      explored_under(fault_case("plain", {{"stage", "1"}, {"faults", "all"}}), 2, 0);
  EXPECT_EQ(ExplorationStatus::inconclusive, status_of(report)) << told(report);
}

TEST(FaultKinds, Are_written_as_they_are_read) {
  for (const char* text : {"all", "exception", "abort,overflow", "timeout,skipped_step,destroy"})
    EXPECT_EQ(text, sim::fault_kinds_text(*sim::parse_fault_kinds(text)));
  EXPECT_FALSE(sim::parse_fault_kinds("exceptions"));
  EXPECT_FALSE(sim::parse_fault_kinds(""));
  const auto wrong = case_of("plain", {{"faults", "all"}, {"nodes", "each"}}, "explore");
  ASSERT_FALSE(wrong);
  EXPECT_EQ("explore: faults need nodes 'faithful' and judge 'values' or 'streams'",
            wrong.error().text);
}

}  // namespace
}  // namespace zeroproof::train
