#include "props/train/matrix.h"

#include <algorithm>
#include <array>
#include <set>

#include "model/check.h"
#include "props/registry.h"
#include "props/train/configured_scenario.h"

namespace zeroproof::train {
namespace {

constexpr std::size_t kAxes = 6;
// A cell as one index an axis.
using Point = std::array<std::size_t, kAxes>;

// Values of all axes, none empty.
MatrixAxes filled(MatrixAxes axes) {
  if (axes.stages.empty()) axes.stages = {0, 1, 2, 3};
  if (axes.worlds.empty()) axes.worlds = {1, 2, 3, 4, 8};
  if (axes.precisions.empty())
    axes.precisions = {Precision::float32, Precision::bf16, Precision::fp16, Precision::autocast};
  if (axes.backwards.empty()) axes.backwards = {BackwardKind::engine, BackwardKind::tensor};
  if (axes.data.empty()) axes.data = {DataMode::exact, DataMode::real};
  if (!axes.scenarios.empty()) return axes;
  for (const TrainScenario& scenario : scenario_catalogue())
    if (scenario.is_in_matrix) axes.scenarios.emplace_back(scenario.name);
  return axes;
}

TrainCell cell_at(const MatrixAxes& axes, const Point& at, const TrainCell& base) {
  TrainCell cell = base;
  cell.scenario = axes.scenarios[at[0]];
  cell.stage = axes.stages[at[1]];
  cell.world_size = axes.worlds[at[2]];
  cell.precision = axes.precisions[at[3]];
  cell.backward = axes.backwards[at[4]];
  cell.data = axes.data[at[5]];
  return cell;
}

bool applies(const TrainCell& cell) {
  const auto scenario = find_scenario(cell.scenario);
  return scenario && is_applicable(**scenario, cell);
}

std::vector<Point> all_points(const MatrixAxes& axes) {
  const Point sizes = {axes.scenarios.size(),  axes.stages.size(),    axes.worlds.size(),
                       axes.precisions.size(), axes.backwards.size(), axes.data.size()};
  std::vector<Point> points;
  Point at = {};
  while (true) {
    points.push_back(at);
    std::size_t axis = kAxes;
    while (axis > 0 && ++at[axis - 1] == sizes[axis - 1]) at[--axis] = 0;
    if (axis == 0) return points;
  }
}

// Two axes and a value of each, as one number.
std::uint64_t pair_of(const Point& point, std::size_t a, std::size_t b) {
  return ((a * kAxes + b) << 32U) + (point[a] << 16U) + point[b];
}

template <class Function>
void for_each_pair(const Point& point, Function function) {
  for (std::size_t a = 0; a < kAxes; ++a)
    for (std::size_t b = a + 1; b < kAxes; ++b) function(pair_of(point, a, b));
}

// Greedy: the point that covers most uncovered pairs, the first of equals.
std::vector<Point> pairwise(const std::vector<Point>& points) {
  std::set<std::uint64_t> open;
  for (const Point& point : points)
    for_each_pair(point, [&](std::uint64_t pair) { open.insert(pair); });
  std::vector<Point> chosen;
  while (!open.empty()) {
    const Point* best = nullptr;
    std::size_t most = 0;
    for (const Point& point : points) {
      std::size_t gain = 0;
      for_each_pair(point, [&](std::uint64_t pair) { gain += open.count(pair); });
      if (gain > most) {
        most = gain;
        best = &point;
      }
    }
    ZP_CHECK(best != nullptr, "an open pair is in some point");
    for_each_pair(*best, [&](std::uint64_t pair) { open.erase(pair); });
    chosen.push_back(*best);
  }
  std::ranges::sort(chosen);
  return chosen;
}

void tally(const PropertiesReport& cell, std::vector<PropertyTally>& all) {
  if (all.empty())
    for (const Property& property : all_properties()) all.emplace_back().property = &property;
  const auto of = [&](const Property* property) -> PropertyTally& {
    return *std::ranges::find(all, property, &PropertyTally::property);
  };
  for (const Property* property : cell.held) ++of(property).held;
  for (const NotApplicable& one : cell.not_applicable) of(one.property).reason = one.reason;
  std::set<const Property*> falsified;
  for (const Finding& finding : cell.falsified) falsified.insert(finding.property);
  for (const Property* property : falsified) ++of(property).falsified;
}

}  // namespace

std::vector<TrainCell> matrix_cells(MatrixKind kind, const MatrixAxes& given,
                                    const TrainCell& base) {
  const MatrixAxes axes = filled(given);
  std::vector<Point> points;
  for (const Point& point : all_points(axes))
    if (applies(cell_at(axes, point, base))) points.push_back(point);
  if (kind == MatrixKind::pairwise) points = pairwise(points);
  std::vector<TrainCell> cells;
  for (const Point& point : points) cells.push_back(cell_at(axes, point, base));
  return cells;
}

std::int64_t MatrixReport::count(CellStatus status) const {
  return std::ranges::count(cells, status, &TrainReport::status);
}

bool MatrixReport::is_good() const {
  return std::ranges::none_of(cells, &TrainReport::is_bad);
}

std::int64_t MatrixReport::properties_held() const {
  return std::ranges::count_if(properties, [](const PropertyTally& tally) {
    return tally.held > 0 && tally.falsified == 0;
  });
}

void MatrixReport::add(TrainReport cell) {
  if (cell.properties) {
    tally(*cell.properties, properties);
    cell.properties->held.clear();
    cell.properties->not_applicable.clear();
  }
  cells.push_back(std::move(cell));
}

MatrixReport run_matrix(const std::vector<TrainCell>& cells, const MatrixOptions& options) {
  MatrixReport report;
  for (const TrainCell& cell : cells) {
    if (options.should_stop && options.should_stop()) break;
    const auto scenario = find_scenario(cell.scenario);
    ZP_CHECK(scenario.has_value(), "matrix_cells() takes scenarios of the catalogue");
    report.add(train(configured(**scenario, cell), cell, options.checks));
    if (options.on_cell) options.on_cell(report.cells.size());
  }
  return report;
}

}  // namespace zeroproof::train
