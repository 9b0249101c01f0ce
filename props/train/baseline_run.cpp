// All windows of a scenario under the unsharded baseline.
#include <algorithm>
#include <utility>

#include "props/train/baseline_target.h"

namespace zeroproof::train {
namespace {

using reference::WholeEngine;

// Without managed accumulation, every backward counts as a micro-batch.
std::int64_t micro_batches_of(const ZeroConfig& config, const WindowCounts& window) {
  return config.managed_gradient_accumulation ? config.gradient_accumulation_steps
                                              : window.backwards;
}

void append(std::vector<FullTensor> tensors, const std::string& prefix,
            std::vector<FullTensor>& all) {
  for (FullTensor& tensor : tensors) {
    tensor.name = prefix + tensor.name;
    all.push_back(std::move(tensor));
  }
}

// The update at the end of such a window, and what it left.
void step_window(WholeEngine& engine, const std::string& prefix, const WindowCounts& window,
                 WindowValues& values) {
  append(engine.gradients(), prefix, values.gradients);
  values.outcomes.push_back(engine.step());
  engine.count_micro_steps(window.micro_steps);
  engine.count_step(values.outcomes.back(), micro_batches_of(engine.config(), window));
  values.counters.push_back({prefix + "counters", {}, engine.counters()});
  append(engine.masters(), prefix, values.parameters);
  append(engine.optimizer_state(), prefix, values.states);
  append(engine.weights(), prefix, values.weights);
}

// Every rank's share of the window, then the sums in rank order, then one update an engine.
WindowValues run_window(const TrainScenario& scenario, const TrainCell& cell, Autograd& autograd,
                        std::vector<WholeEngine>& engines, std::int64_t step) {
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
      std::vector<TensorList> sums;
      for (const BaselineTarget& rank : ranks) {
        const auto& own = rank.reductions(engine);
        sums.push_back(i < own.size() ? own[i] : TensorList());  // it has no gradient
      }
      engines[engine].reduce(sums);
    }
    step_window(engines[engine], engine_prefix(engine), ranks.front().steps(engine), values);
  }
  return values;
}

}  // namespace

std::vector<WindowValues> run_baseline(const TrainScenario& scenario, const TrainCell& cell) {
  const CpuOps ops;
  Autograd autograd(ops);
  std::vector<std::shared_ptr<nn::Module>> models;
  std::vector<WholeEngine> engines;
  for (const ModelKind kind : scenario.truth_models()) {
    ModelOptions options{
        .data = cell.data, .seed = cell.seed + engines.size(), .device = cell.device};
    models.push_back(make_model(kind, options));
    engines.emplace_back(*models.back(), config_of(scenario, cell, engines.size()), ops,
                         WholeEngine::Options{.replicas = {.ranks = cell.data_ranks()}});
  }
  std::vector<WindowValues> windows;
  for (std::int64_t step = 0; step < cell.steps; ++step) {
    windows.push_back(run_window(scenario, cell, autograd, engines, step));
  }
  return windows;
}

}  // namespace zeroproof::train
