// All windows of a scenario under the unsharded baseline.
#include <algorithm>
#include <utility>

#include "props/train/baseline_target.h"

namespace zeroproof::train {
namespace {

// Every rank's share of the window, then the sums in rank order, then one update an engine.
WindowValues run_window(const TrainScenario& scenario, const TrainCell& cell, Autograd& autograd,
                        std::vector<BaselineEngine>& engines, std::int64_t step) {
  WindowValues values;
  std::vector<BaselineTarget> ranks;
  for (int rank = 0; rank < cell.world_size; ++rank) {
    WindowValues others;
    BaselineTarget& target =
        ranks.emplace_back(autograd, engines, rank, rank == 0 ? &values : &others);
    Pass pass(scenario, cell, target, step);
    scenario.window(pass);
    target.stop_recording();
  }
  for (std::size_t engine = 0; engine < engines.size(); ++engine) {
    std::size_t reductions = 0;
    for (const BaselineTarget& rank : ranks)
      reductions = std::max(reductions, rank.reductions(engine).size());
    for (std::size_t i = 0; i < reductions; ++i) {
      std::vector<BaselineEngine::LocalSums> sums;
      for (const BaselineTarget& rank : ranks) {
        const auto& own = rank.reductions(engine);
        sums.push_back(i < own.size() ? own[i]
                                      : BaselineEngine::LocalSums());  // it has no gradient
      }
      engines[engine].reduce(sums);
    }
    engines[engine].step(engine_prefix(engine), ranks.front().steps(engine), values);
  }
  return values;
}

}  // namespace

std::vector<WindowValues> run_baseline(const TrainScenario& scenario, const TrainCell& cell) {
  const CpuOps ops;
  Autograd autograd(ops);
  std::vector<BaselineEngine> engines;
  for (const ModelKind kind : scenario.truth_models()) {
    ModelOptions options{
        .data = cell.data, .seed = cell.seed + engines.size(), .device = cell.device};
    engines.emplace_back(make_model(kind, options), config_of(scenario, cell, engines.size()), ops,
                         cell.data_ranks());
  }
  std::vector<WindowValues> windows;
  for (std::int64_t step = 0; step < cell.steps; ++step) {
    windows.push_back(run_window(scenario, cell, autograd, engines, step));
  }
  return windows;
}

}  // namespace zeroproof::train
