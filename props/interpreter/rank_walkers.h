#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "props/interpreter/program_run.h"
#include "props/reference/walker.h"
#include "props/train/run_judge.h"

namespace zeroproof::program {

// A reference walker beside each rank of a program's last world.
class RankWalkers {
 public:
  // Listens to the ranks of the judge. Each needs the other until the last event.
  RankWalkers(const RunnableProgram& runnable, const EngineVariant& variant,
              train::RunJudge& judge);

  // After the run, with the results of its last world. Call once.
  void finish(const std::vector<RankRun>& ranks);

  using See = std::function<void(int rank, const reference::Finding& finding)>;
  void for_each_finding(const See& see) const;
  const reference::Coverage& coverage() const { return coverage_; }

 private:
  std::vector<reference::World> worlds_;
  std::deque<reference::Walker> walkers_;
  std::vector<std::vector<reference::Finding>> findings_;  // by rank
  reference::Coverage coverage_;
};

}  // namespace zeroproof::program
