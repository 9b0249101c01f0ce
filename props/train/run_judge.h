#pragma once

#include <memory>
#include <vector>

#include "props/train/cell_run.h"
#include "props/train/rank_judge.h"
#include "props/train/run_watch.h"

namespace zeroproof::train {

// The properties of one run, over the events and memory accesses of all its ranks.
class RunJudge final : public RunWatch {
 public:
  // Both must outlive it.
  RunJudge(const TrainScenario& scenario, const TrainCell& cell);
  explicit RunJudge(const std::vector<RankFacts>& ranks);

  std::vector<RankObservers> observers() override;
  void attach(std::size_t rank, EngineTarget::Options& options) override;

  RankJudge& rank(std::size_t rank) { return *ranks_[rank]; }

  // After the run; a rank whose engine refused came to its program's end all the same. Call once.
  PropertiesReport finish(const CellRun& run) { return finish(errors_of(run.ranks)); }
  // What each rank threw; null for none.
  PropertiesReport finish(const std::vector<std::exception_ptr>& errors);

 private:
  std::vector<std::unique_ptr<RankJudge>> ranks_;
};

}  // namespace zeroproof::train
