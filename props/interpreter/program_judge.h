#pragma once

#include <memory>
#include <vector>

#include "props/interpreter/program_run.h"
#include "props/train/rank_judge.h"
#include "props/train/run_watch.h"

namespace zeroproof::program {

// The properties of the last world of a program, over the events and memory accesses of all its
// ranks.
class ProgramJudge final : public train::RunWatch {
 public:
  // Must outlive it.
  explicit ProgramJudge(const RunnableProgram& runnable);

  std::vector<RankObservers> observers() override;
  void attach(std::size_t rank, train::EngineTarget::Options& options) override;
  train::RankJudge& rank(std::size_t rank) { return *ranks_[rank]; }

  // After the run; call once.
  PropertiesReport finish(const SegmentRun& run);

 private:
  std::vector<std::unique_ptr<train::RankJudge>> ranks_;
};

}  // namespace zeroproof::program
