// Exploration of the built-in scenarios: exact holds everything, the upstream policies falsify
// what tests/props/hazard_table.json says, and every finding can be run again and is minimal.
#include "props/exploration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "props/registry.h"
#include "props/scenario_reduction.h"
#include "tests/props/explored.h"
#include "tests/props/test_word.h"

namespace zeroproof {
namespace {

using testing::every_field;
using testing::explore_written;
using testing::failing_property;
using Json = nlohmann::json;

ExplorationOptions options_for(std::string_view scenario, std::string_view policy) {
  ExplorationOptions options;
  options.scenario = scenario;
  options.policy = policy;
  options.minimizes = false;
  return options;
}

Scenario loaded(std::string_view id) {
  return load_scenario(std::string(id)).value();
}

class EveryScenario : public ::testing::TestWithParam<std::string_view> {};

void expect_exact_holds(const ExplorationOptions& options) {
  const auto report = explore_scenario(options);
  ASSERT_TRUE(report) << report.error().text;
  EXPECT_TRUE(report->has_held()) << failing_property(*report);
  ASSERT_TRUE(report->linear_extensions) << report->linear_extensions_reason;
  EXPECT_EQ(report->orders_explored->text(), report->linear_extensions->text());
  EXPECT_LT(report->executions, 5'000U);
  const auto held = std::count_if(report->verdicts.begin(), report->verdicts.end(),
                                  [](const Verdict& v) { return v.status == Status::held; });
  EXPECT_GT(held, options.scenario == "S12" ? 1 : 4);
}

TEST_P(EveryScenario, Holds_under_exact_in_both_order_models) {
  for (const OrderModel order_model : {OrderModel::faithful, OrderModel::any_topological}) {
    for (const std::uint32_t params : {4U, 8U}) {
      const bool is_slow = GetParam() == "S16" || GetParam() == "S19";
      if (params == 8 && is_slow && order_model == OrderModel::any_topological) continue;
      ExplorationOptions options = options_for(GetParam(), "exact");
      options.order_model = order_model;
      options.params = params;
      expect_exact_holds(options);
    }
  }
}

TEST_P(EveryScenario, Is_the_same_after_it_is_written_and_read) {
  for (const std::uint32_t factor : {1U, 2U, 3U}) {
    const Scenario scenario = widen(loaded(GetParam()), factor);
    const std::string text = scenario_text(scenario);
    const auto again = parse_scenario(text, GetParam());
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(scenario_text(*again), text);
    EXPECT_EQ(every_field(again->program), every_field(scenario.program));
    EXPECT_EQ(again->program.engines.front().params.size(),
              loaded(GetParam()).program.engines.front().params.size() * factor);
  }
}

INSTANTIATE_TEST_SUITE_P(Builtin, EveryScenario, ::testing::ValuesIn([] {
                           std::vector<std::string_view> ids;
                           for (const ScenarioFile& file : builtin_scenarios())
                             ids.push_back(file.id);
                           return ids;
                         }()),
                         [](const auto& id) { return std::string(id.param); });

// policy, mode, scenario -> numbers of the properties that some order falsifies.
Json falsified_by_upstream() {
  Json rows = Json::array();
  for (const char* policy : {"deepspeed-0.18.3", "deepspeed-0.18.5", "deepspeed-0.18.7",
                             "deepspeed-0.19.6", "deepspeed-pr8245", "x2"}) {
    for (const PolicyMode mode : {PolicyMode::graph_task_callback, PolicyMode::count_fallback}) {
      for (const ScenarioFile& file : builtin_scenarios()) {
        ExplorationOptions options = options_for(file.id, policy);
        options.mode = mode;
        Json falsified = Json::array();
        const ExplorationReport report = explore_scenario(options).value();
        for (const ExplorationFinding& finding : report.findings) {
          falsified.push_back(std::string(finding.property->number));
        }
        if (falsified.empty()) continue;
        rows.push_back({{"policy", policy},
                        {"mode", std::string(policy_mode_name(mode))},
                        {"scenario", std::string(file.id)},
                        {"falsified", std::move(falsified)}});
      }
    }
  }
  return rows;
}

TEST(HazardTable, Is_what_the_upstream_policies_falsify) {
  const Json actual = falsified_by_upstream();
  std::ifstream file(ZP_SOURCE_DIR "/tests/props/hazard_table.json");
  const Json expected = Json::parse(file).at("rows");
  EXPECT_EQ(actual.size(), expected.size());
  for (const Json& row : actual) {
    EXPECT_NE(std::find(expected.begin(), expected.end(), row), expected.end()) << row.dump();
  }
}

bool is_falsified(const RecordedRun& run, const Property* property) {
  return std::any_of(run.verdicts.begin(), run.verdicts.end(), [&](const Verdict& verdict) {
    return verdict.property == property && verdict.status == Status::falsified;
  });
}

// One policy and mode of each kind of failure: early, missing, repeated, and what aborts leave.
struct FindingCase {
  const char* scenario;
  const char* policy;
  PolicyMode mode;
};

class Findings : public ::testing::TestWithParam<FindingCase> {
 protected:
  ExplorationReport explored() const {
    ExplorationOptions options = options_for(GetParam().scenario, GetParam().policy);
    options.mode = GetParam().mode;
    options.minimizes = true;
    return explore_scenario(options).value();
  }
};

TEST_P(Findings, Fail_again_when_their_schedules_are_run) {
  const ExplorationReport report = explored();
  ASSERT_FALSE(report.findings.empty());
  for (const ExplorationFinding& finding : report.findings) {
    const auto whole = run_schedule(finding.schedule);
    ASSERT_TRUE(whole) << whole.error().text;
    EXPECT_TRUE(is_falsified(*whole, finding.property)) << finding.property->number;
    const auto small = run_schedule(finding.minimized_schedule, finding.minimized);
    ASSERT_TRUE(small) << small.error().text;
    EXPECT_TRUE(is_falsified(*small, finding.property)) << finding.property->number;
    EXPECT_EQ(small->events, finding.events);
    EXPECT_LE(finding.events.size(), whole->events.size());
    ASSERT_LT(finding.bad_event, finding.events.size());
  }
}

// No smaller scenario fails in all the ways that the whole scenario does.
TEST_P(Findings, Are_minimal) {
  const ExplorationReport whole = explored();
  ASSERT_FALSE(whole.findings.empty());
  EXPECT_TRUE(whole.findings.front().is_minimal);
  for (const Scenario& smaller : smaller_scenarios(whole.findings.front().minimized)) {
    ExplorationOptions options = options_for("", GetParam().policy);
    options.mode = GetParam().mode;
    const ExplorationReport report = explore_written(smaller, options);
    const auto still_fails = [&](const ExplorationFinding& finding) {
      return std::any_of(
          report.findings.begin(), report.findings.end(),
          [&](const ExplorationFinding& other) { return other.property == finding.property; });
    };
    EXPECT_FALSE(std::all_of(whole.findings.begin(), whole.findings.end(), still_fails))
        << scenario_text(smaller) << "still fails and is smaller";
  }
}

constexpr auto kCallback = PolicyMode::graph_task_callback;
constexpr auto kFallback = PolicyMode::count_fallback;

INSTANTIATE_TEST_SUITE_P(Of, Findings,
                         ::testing::Values(FindingCase{"S2", "deepspeed-0.18.3", kCallback},
                                           FindingCase{"S14", "deepspeed-0.18.3", kFallback},
                                           FindingCase{"S2", "deepspeed-0.18.5", kFallback},
                                           FindingCase{"S3", "deepspeed-0.18.5", kFallback},
                                           FindingCase{"S5", "deepspeed-0.18.7", kCallback},
                                           FindingCase{"S7b", "deepspeed-0.18.7", kCallback},
                                           FindingCase{"S8", "deepspeed-0.18.7", kCallback},
                                           FindingCase{"S18", "deepspeed-pr8245", kFallback},
                                           FindingCase{"S20", "deepspeed-0.19.6", kCallback},
                                           FindingCase{"S21", "deepspeed-0.19.6", kCallback},
                                           FindingCase{"S7", "deepspeed-0.19.6", kCallback}),
                         [](const auto& one) {
                           return test_word(std::string(one.param.scenario) + "_" +
                                            one.param.policy);
                         });

TEST(Minimising, Reduces_the_reentrant_checkpoint_to_its_core) {
  ExplorationOptions options = options_for("S2", "deepspeed-0.18.3");
  options.minimizes = true;
  const auto report = explore_scenario(options).value();
  const auto early = std::find_if(report.findings.begin(), report.findings.end(),
                                  [](const auto& f) { return f.property->number == "P2"; });
  ASSERT_NE(early, report.findings.end());
  EXPECT_LE(early->minimized.program.statements.size(), 2U);
  EXPECT_LE(early->minimized.program.engines.front().params.size(), 2U);
  EXPECT_LT(early->events.size(), run_schedule(early->schedule)->events.size());
}

TEST(Minimising, Shrinks_a_widened_finding_like_the_one_of_the_file) {
  ExplorationOptions options = options_for("S5", "deepspeed-0.18.7");
  options.minimizes = true;
  const auto at_four = explore_scenario(options).value();
  options.params = 8;
  const auto at_eight = explore_scenario(options).value();
  ASSERT_EQ(at_four.findings.size(), at_eight.findings.size());
  for (std::size_t at = 0; at < at_four.findings.size(); ++at) {
    EXPECT_EQ(scenario_text(at_four.findings[at].minimized),
              scenario_text(at_eight.findings[at].minimized));
  }
}

// PyTorch's order follows the sequence numbers: layers of the three engines stay interleaved.
TEST(RunSchedule, Keeps_the_faithful_order_of_a_widened_scenario) {
  const auto run = run_schedule(
      {.scenario = "S19", .settings = {{"latitude", "faithful"}, {"N", "8"}}, .choices = {}});
  ASSERT_TRUE(run) << run.error().text;
  std::string order;
  for (const HookEvent& event : run->events) {
    if (event.kind != EventKind::param_post_acc) continue;
    order += std::string(run->names.text(event.param)) + ' ';
  }
  EXPECT_EQ(order, "a.p4 a.p3 b.p4 b.p3 c.p4 c.p3 a.p2 a.p1 b.p2 b.p1 c.p2 c.p1 ");
}

TEST(RunSchedule, Refuses_a_schedule_that_does_not_fit) {
  const std::map<std::string, std::string> settings = {
      {"policy", "exact"}, {"mode", "graph_task_callback"}, {"latitude", "any_topological"}};
  Schedule schedule{.scenario = "S1", .settings = settings, .choices = {99}};
  auto run = run_schedule(schedule);
  ASSERT_FALSE(run);
  EXPECT_NE(run.error().text.find("does not fit scenario 'S1'"), std::string::npos);
  schedule.choices = {0, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_FALSE(run_schedule(schedule));
  schedule.choices = {};
  EXPECT_FALSE(run_schedule(schedule));
}

TEST(RunSchedule, Refuses_settings_it_does_not_know) {
  const auto error_of = [](const char* key, const char* value) {
    const auto run = run_schedule({.scenario = "S1", .settings = {{key, value}}, .choices = {}});
    return run ? std::string("accepted") : run.error().text;
  };
  EXPECT_NE(error_of("colour", "red").find("'colour=red'"), std::string::npos);
  EXPECT_NE(error_of("N", "four").find("N=four"), std::string::npos);
  EXPECT_NE(error_of("N", "6").find("multiple of 4"), std::string::npos);
  EXPECT_NE(error_of("mode", "guess").find("'guess'"), std::string::npos);
  EXPECT_NE(error_of("latitude", "wide").find("'wide'"), std::string::npos);
  EXPECT_NE(error_of("policy", "pr1").find("'pr1'"), std::string::npos);
}

TEST(ExploreScenario, Refuses_what_cannot_be_explored) {
  const auto error_of = [](const ExplorationOptions& options) {
    const auto report = explore_scenario(options);
    return report ? std::string("accepted") : report.error().text;
  };
  EXPECT_NE(error_of(options_for("S99", "exact")).find("unknown scenario"), std::string::npos);
  ExplorationOptions options = options_for("S1", "exact");
  options.mode = kFallback;
  EXPECT_NE(error_of(options).find("needs the graph-task callback"), std::string::npos);
  options = options_for("S1", "exact");
  options.params = 5;
  EXPECT_NE(error_of(options).find("multiple of 4"), std::string::npos);
  options = options_for("S1", "exact");
  options.scheduler = "luck";
  EXPECT_NE(error_of(options).find("luck"), std::string::npos);
}

}  // namespace
}  // namespace zeroproof
