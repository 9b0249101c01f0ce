#pragma once

#include <memory>
#include <string>
#include <vector>

#include "props/train/rank_judge.h"
#include "props/train/run_watch.h"
#include "zeroproof/model/result.h"

namespace zeroproof::train {

class RankRecorder;

// Hooktrace files of a run, one a rank: what engines say about themselves, and what modules,
// graph tasks, checkpoints and callbacks of the models do, on one logical clock.
class RankTraces final : public RunWatch {
 public:
  // One rank writes `path`; several write "_r0" and so on before its ending, of a job each process
  // its own. Files appear whole when finish() succeeds.
  static Result<std::unique_ptr<RankTraces>> create(const std::string& path,
                                                    const TrainScenario& scenario,
                                                    const TrainCell& cell);
  // The same of all ranks of a program.
  static Result<std::unique_ptr<RankTraces>> create(const std::string& path,
                                                    const std::vector<RankFacts>& ranks);
  RankTraces();  // see create()
  ~RankTraces() override;

  std::vector<RankObservers> observers() override;
  void attach(std::size_t rank, EngineTarget::Options& options) override;
  Result<void> finish();

 private:
  std::vector<std::unique_ptr<RankRecorder>> ranks_;  // null: of another process
};

// "run_r3.jsonl.gz" for "run.jsonl.gz" and rank 3 of several.
std::string rank_path(const std::string& path, int rank, int world_size);

}  // namespace zeroproof::train
