#include "props/train/run_judge.h"

#include "props/replay/run_group.h"

namespace zeroproof::train {

RunJudge::RunJudge(const TrainScenario& scenario, const TrainCell& cell) {
  for (int rank = 0; rank < cell.world_size; ++rank)
    ranks_.push_back(std::make_unique<RankJudge>(scenario, cell, rank));
}

RunJudge::RunJudge(const std::vector<RankFacts>& ranks) {
  for (const RankFacts& facts : ranks) ranks_.push_back(std::make_unique<RankJudge>(facts));
}

std::vector<RankObservers> RunJudge::observers() {
  std::vector<RankObservers> all;
  for (const auto& rank : ranks_) all.push_back(rank->observers());
  return all;
}

void RunJudge::attach(std::size_t rank, EngineTarget::Options& options) {
  options.models = &ranks_[rank]->models();
  options.autograd = &ranks_[rank]->models();
}

PropertiesReport RunJudge::finish(const std::vector<std::exception_ptr>& errors) {
  RunGroup group;
  PropertiesReport report;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::exception_ptr& error = errors.at(rank);
    ranks_[rank]->finish(!error || engine_error_of(error));
    group.add(ranks_[rank]->level(), "rank " + std::to_string(rank));
    report.merge(ranks_[rank]->report());
  }
  for (const RunGroup::FileReport& one : group.compare()) report.merge(one.report);
  return report;
}

}  // namespace zeroproof::train
