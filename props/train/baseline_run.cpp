// All windows of a scenario under the unsharded baseline.
#include <algorithm>
#include <utility>

#include "props/train/baseline_target.h"
#include "props/train/case_worlds.h"

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
    if (rank > 0) values.records_of_others.push_back(std::move(others.records));
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
  if (has_gradients_apart(scenario)) values.gradients.clear();
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
    options.spec = scenario.spec;
    engines.emplace_back(make_model(kind, options), config_of(scenario, cell, engines.size()), ops,
                         cell.data_ranks(), scenario.spec, scenario.parameter_groups);
    if (const auto scale = custom_loss_scale_of(scenario, engines.size() - 1))
      engines.back().override_loss_scale(*scale);
  }
  std::vector<WindowValues> windows;
  for (std::int64_t step = 0; step < cell.steps; ++step) {
    TrainCell at = cell;
    at.world_size = ranks_of_window(scenario, cell, step);
    at.tensor_degree = 1;  // one stands for all of a group
    for (BaselineEngine& engine : engines) engine.set_world_size(at.world_size);
    windows.push_back(run_window(scenario, at, autograd, engines, step));
  }
  windows.erase(windows.begin(), windows.begin() + windows_elsewhere(scenario));
  return windows;
}

}  // namespace zeroproof::train
