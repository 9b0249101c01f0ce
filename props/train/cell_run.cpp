#include "props/train/cell_run.h"

#include <algorithm>

#include "sim/schedulers/random.h"

namespace zeroproof::train {
namespace {

void run_windows(const TrainScenario& scenario, const TrainCell& cell, EngineTarget& target,
                 RankRun& run) {
  try {
    for (std::int64_t step = 0; step < cell.steps; ++step) {
      Pass pass(scenario, cell, target, step);
      scenario.window(pass);
      run.windows.push_back(target.take_values());
    }
  } catch (...) {
    run.has_changed_gradients = target.has_changed_gradients();
    throw;
  }
}

void run_rank(const TrainScenario& scenario, const TrainCell& cell, Runtime& runtime,
              const EngineTarget::Options& options, RankRun& run) {
  EngineTarget target(scenario, cell, runtime, options);
  try {
    run_windows(scenario, cell, target, run);
  } catch (const EngineError&) {
    run.error = std::current_exception();
    return;
  }
  run.loss_scale = target.engine(0).loss_scale();
  run.memory = runtime.memory().stats(Placement::device);
}

}  // namespace

bool CellRun::has_failed() const {
  return std::ranges::any_of(ranks, [](const RankRun& run) { return run.error != nullptr; });
}

std::size_t CellRun::deciding_rank() const {
  auto at = std::ranges::find_if(
      ranks, [](const RankRun& run) { return run.error && engine_error_of(run.error); });
  if (at == ranks.end())
    at = std::ranges::find_if(ranks, [](const RankRun& run) { return run.error != nullptr; });
  return static_cast<std::size_t>(at - ranks.begin());
}

CellRun run_ranks(const TrainScenario& scenario, const TrainCell& cell,
                  const CellRunOptions& options) {
  CellRun run;
  run.ranks.resize(static_cast<std::size_t>(cell.world_size));
  HostWorldOptions world_options;
  world_options.world_size = cell.world_size;
  world_options.device = Device::cpu();
  if (options.watch) world_options.observers = options.watch->observers();
  HostWorld world(world_options);
  const auto errors = world.try_run([&](Runtime& runtime) {
    const auto rank = static_cast<std::size_t>(runtime.rank());
    EngineTarget::Options target{.collects_values = options.collects_values};
    if (options.watch) options.watch->attach(rank, target);
    std::optional<RandomScheduler> order;
    if (cell.order_seed) {
      order.emplace(*cell.order_seed);
      order->new_execution();
      target.order = &*order;
    }
    run_rank(scenario, cell, runtime, target, run.ranks[rank]);
  });
  for (std::size_t rank = 0; rank < errors.size(); ++rank)
    if (errors[rank]) run.ranks[rank].error = errors[rank];
  return run;
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    return thrown.what();
  } catch (...) {
    return "an exception without a text";
  }
}

std::optional<EngineErrorId> engine_error_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const EngineError& thrown) {
    return thrown.id();
  } catch (...) {
    return std::nullopt;
  }
}

bool is_configuration_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ConfigurationRefused&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace zeroproof::train
