// The reference walker beside what `zeroproof train` runs: it accuses no healthy engine.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>

#include "props/reference/walker.h"
#include "props/train/cell_run.h"
#include "props/train/matrix.h"
#include "props/train/reference_worlds.h"
#include "props/train/run_judge.h"

namespace zeroproof::reference {
namespace {

using train::TrainCell;
using train::TrainScenario;

struct Walked {
  std::vector<std::string> findings;
  Coverage coverage;
};

Walked walk(const TrainScenario& scenario, const TrainCell& cell) {
  train::RunJudge judge(scenario, cell);
  std::deque<Walker> walkers;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(cell.world_size); ++rank) {
    auto worlds = train::reference_worlds(scenario, cell, train::unseen_of(scenario, cell));
    walkers.emplace_back(judge.rank(rank).names(), std::move(worlds));
    judge.rank(rank).listen(walkers.back());
  }
  const train::CellRun run = train::run_ranks(scenario, cell, {.watch = &judge});
  Walked walked;
  for (std::size_t rank = 0; rank < walkers.size(); ++rank) {
    walkers[rank].finish(!run.ranks[rank].error);
    for (const Finding& finding : walkers[rank].findings())
      walked.findings.push_back(fmt::format("{}, rank {}: {} at lc {}: {}", train::flags_of(cell),
                                            rank, info(finding.rule).id, finding.lc, finding.text));
    walked.coverage.add(walkers[rank].coverage());
  }
  return walked;
}

std::string reasons(const Share& share) {
  std::string text;
  for (std::size_t i = 0; i < kFreedoms; ++i)
    if (share.unspecified[i] > 0)
      text += fmt::format(
          "{}: {:.2f} %\n", freedom_name(static_cast<Freedom>(i)),
          100.0 * static_cast<double>(share.unspecified[i]) / static_cast<double>(share.units));
  return text;
}

// How much of the runs below may be left open, in per cent.
constexpr double kOpenParameterTime = 7.5;
constexpr double kOpenCollectives = 0.01;

TEST(ReferenceRuns, Accuses_no_cell_of_the_pairwise_matrix) {
  Coverage coverage;
  for (const TrainCell& cell : train::matrix_cells(train::MatrixKind::pairwise, {}, {})) {
    const Walked walked = walk(**train::find_scenario(cell.scenario), cell);
    coverage.add(walked.coverage);
    for (const std::string& finding : walked.findings) ADD_FAILURE() << finding;
  }
  for (const RuleInfo& rule : rules()) {
    const bool is_elsewhere = rule.rule == Rule::rest_bytes || rule.rule == Rule::count_once;
    if (!is_elsewhere) {
      EXPECT_GT(coverage.applied[static_cast<std::size_t>(rule.rule)], 0) << rule.id;
    }
  }
  EXPECT_LT(coverage.parameter_time.percent_unspecified(), kOpenParameterTime)
      << reasons(coverage.parameter_time);
  EXPECT_LT(coverage.collectives.percent_unspecified(), kOpenCollectives)
      << reasons(coverage.collectives);
}

TEST(ReferenceRuns, Accuses_no_scenario_of_the_simulator) {
  for (const TrainScenario& scenario : train::scenario_catalogue())
    for (int stage = 0; stage <= 3; ++stage) {
      TrainCell cell;
      cell.scenario = scenario.name;
      cell.stage = stage;
      cell.sim = train::SimOrder{.scheduler = "random"};
      if (!train::is_applicable(scenario, cell) || train::is_configuration_refused(scenario, cell))
        continue;
      for (const std::string& finding : walk(scenario, cell).findings) ADD_FAILURE() << finding;
    }
}

}  // namespace
}  // namespace zeroproof::reference
