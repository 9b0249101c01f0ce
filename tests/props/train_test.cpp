// The equality matrix: engines of all stages against the unsharded baseline.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "props/report/train_report.h"
#include "props/train/baseline_target.h"
#include "props/train/matrix.h"

namespace zeroproof::train {
namespace {

std::string failures_of(const MatrixReport& report) {
  std::string text;
  for (const TrainReport& cell : report.cells)
    if (cell.is_bad()) text += train_text(cell, Palette());
  return text;
}

std::set<std::string> numbers_held(const MatrixReport& report) {
  std::set<std::string> held;
  for (const PropertyTally& tally : report.properties)
    if (tally.held > 0) held.insert(std::string(tally.property->number));
  return held;
}

TEST(Train, A_pairwise_subset_of_the_matrix_equals_the_baseline_and_holds_its_properties) {
  const auto cells = matrix_cells(MatrixKind::pairwise, {}, {});
  const MatrixReport report = run_matrix(cells, {.checks = {.has_properties = true}});
  EXPECT_TRUE(report.is_good()) << failures_of(report);
  EXPECT_EQ(cells.size(), report.cells.size());
  EXPECT_GT(report.count(CellStatus::refused), 0);
  EXPECT_GT(report.count(CellStatus::equal), report.count(CellStatus::refused));
  const std::set<std::string> held = numbers_held(report);
  for (const char* number : {"P1", "P2", "P14", "P24", "P26", "P38", "P40", "P45", "P46", "P47",
                             "P48", "P57", "P61", "P62", "P67", "P79", "P84"})
    EXPECT_TRUE(held.contains(number)) << number;
}

// What a program of several engines does after it was refused is the same on all ranks.
TEST(Train, A_refused_cell_holds_its_properties_on_every_rank) {
  TrainCell cell;
  cell.scenario = "two_engines";
  cell.world_size = 8;
  cell.precision = Precision::fp16;
  for (const int stage : {1, 2, 3}) {
    cell.stage = stage;
    const TrainReport report =
        train(**find_scenario(cell.scenario), cell, {.has_properties = true});
    EXPECT_EQ(CellStatus::refused, report.status);
    EXPECT_FALSE(report.is_bad()) << train_text(report, Palette());
  }
}

TEST(Train, A_quirk_falsifies_the_property_that_it_breaks) {
  TrainCell cell;
  cell.scenario = "scale_argument";
  cell.backward = BackwardKind::tensor;
  cell.quirks = *Quirks::parse("h8");
  const TrainReport report = train(**find_scenario(cell.scenario), cell, {.has_properties = true});
  EXPECT_TRUE(report.is_bad());
  const auto is_p20 = [](const Finding& one) { return one.property->number == "P20"; };
  EXPECT_TRUE(std::ranges::any_of(report.properties->falsified, is_p20));
}

TEST(Train, A_pairwise_subset_has_every_pair_of_values) {
  std::set<std::pair<std::string, int>> pairs;
  for (const TrainCell& cell : matrix_cells(MatrixKind::pairwise, {}, {}))
    pairs.insert({cell.scenario, cell.world_size});
  std::size_t scenarios = 0;
  for (const TrainScenario& scenario : scenario_catalogue()) scenarios += scenario.is_in_matrix;
  EXPECT_EQ(scenarios * 5, pairs.size());
}

TEST(Train, Scenarios_outside_the_matrix_equal_the_baseline_too) {
  MatrixAxes axes;
  for (const TrainScenario& scenario : scenario_catalogue())
    if (!scenario.is_in_matrix) axes.scenarios.emplace_back(scenario.name);
  axes.worlds = {1, 2};
  axes.precisions = {Precision::float32, Precision::fp16};
  const MatrixReport report = run_matrix(matrix_cells(MatrixKind::full, axes, {}));
  EXPECT_TRUE(report.is_good()) << failures_of(report);
}

TEST(Train, Scenarios_outside_the_matrix_hold_their_properties) {
  MatrixAxes axes;
  for (const TrainScenario& scenario : scenario_catalogue())
    if (!scenario.is_in_matrix) axes.scenarios.emplace_back(scenario.name);
  const auto cells = matrix_cells(MatrixKind::pairwise, axes, {});
  const MatrixReport report = run_matrix(cells, {.checks = {.has_properties = true}});
  EXPECT_TRUE(report.is_good()) << failures_of(report);
  const std::set<std::string> held = numbers_held(report);
  for (const char* number : {"P20", "P21", "P24", "P77"})
    EXPECT_TRUE(held.contains(number)) << number;
}

// A cell that is right, and the same made wrong: by quirks, a policy, without the callback API, or
// by the fallback of #8059.
struct QuirkRow {
  TrainCell cell;
  TrainCell broken;
};

std::vector<QuirkRow> quirk_rows() {
  std::ifstream file(ZP_SOURCE_DIR "/tests/props/train_quirks.json");
  std::vector<QuirkRow> rows;
  const auto document = nlohmann::json::parse(file);
  for (const auto& row : document.at("rows")) {
    QuirkRow made;
    made.cell.scenario = row.at("scenario");
    made.cell.stage = row.at("stage");
    made.cell.precision = *precision_of(row.at("dtype").get<std::string>());
    if (row.at("backward") == "tensor") made.cell.backward = BackwardKind::tensor;
    made.broken = made.cell;
    made.broken.quirks = *Quirks::parse(row.value("quirk", "none"));
    made.broken.policy = row.value("policy", "exact");
    if (row.contains("rule")) made.broken.fallback_rule = FallbackRule::after_any_backward;
    if (row.value("api", "full") == "no_callback") made.broken.api = AutogradApi::no_callback;
    rows.push_back(made);
  }
  return rows;
}

TEST(Train, Every_scenario_has_a_quirk_that_breaks_it) {
  std::set<std::string> broken;
  for (const QuirkRow& row : quirk_rows()) {
    const TrainScenario& scenario = **find_scenario(row.cell.scenario);
    const TrainReport clean = train(scenario, row.cell, {.has_baseline = true});
    EXPECT_TRUE(clean.status == CellStatus::equal || clean.status == CellStatus::refused)
        << train_text(clean, Palette());
    const TrainReport report = train(scenario, row.broken, {.has_baseline = true});
    EXPECT_TRUE(report.status == CellStatus::different || report.status == CellStatus::failed)
        << train_text(report, Palette());
    broken.insert(row.cell.scenario);
  }
  for (const TrainScenario& scenario : scenario_catalogue())
    EXPECT_TRUE(broken.contains(std::string(scenario.name))) << scenario.name;
}

TEST(Train, The_baseline_has_every_contribution_once) {
  TrainCell cell;
  cell.scenario = "gas4";
  cell.world_size = 4;
  cell.steps = 1;
  const TrainScenario& scenario = **find_scenario("gas4");
  const auto data = exact_data_of(scenario, cell);
  const WindowValues values = run_baseline(scenario, cell).at(0);
  ASSERT_TRUE(data.is_decodable());
  for (const FullTensor& gradient : values.gradients)
    for (const double value : gradient.values)
      EXPECT_EQ(data.sum(), value * 4 * 4) << gradient.name;  // ranks, micro-batches
}

TEST(Train, Without_the_count_api_only_managed_backward_works) {
  for (const char* name : {"plain", "reentrant", "gas2", "two_losses"})
    for (const BackwardKind backward : {BackwardKind::engine, BackwardKind::tensor})
      for (const AutogradApi api : {AutogradApi::none, AutogradApi::no_callback}) {
        TrainCell cell;
        cell.scenario = name;
        cell.backward = backward;
        cell.api = api;
        const TrainReport report = train(**find_scenario(name), cell, {.has_baseline = true});
        const bool is_refused = backward == BackwardKind::tensor;
        EXPECT_EQ(is_refused ? CellStatus::refused : CellStatus::equal, report.status)
            << train_text(report, Palette());
        EXPECT_EQ(is_refused ? "manual_backward_unsupported" : "", report.refusal);
      }
}

}  // namespace
}  // namespace zeroproof::train
