// The reference walker beside what `zeroproof train` runs: it accuses no healthy engine.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <iostream>

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

TEST(ReferenceRuns, Accuses_no_cell_of_the_pairwise_matrix) {
  Coverage coverage;
  int bad = 0;
  for (const TrainCell& cell : train::matrix_cells(train::MatrixKind::pairwise, {}, {})) {
    const TrainScenario& scenario = **train::find_scenario(cell.scenario);
    const Walked walked = walk(scenario, cell);
    coverage.add(walked.coverage);
    if (!walked.findings.empty() && ++bad <= 200) ADD_FAILURE() << walked.findings.front();
  }
  for (const RuleInfo& rule : rules())
    std::cout << rule.id << " " << coverage.applied[static_cast<std::size_t>(rule.rule)] << "\n";
  std::cout << coverage.parameter_time.percent_unspecified() << "% of parameter time, "
            << coverage.collectives.percent_unspecified() << "% of collectives\n";
}

}  // namespace
}  // namespace zeroproof::reference
