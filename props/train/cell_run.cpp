#include "props/train/cell_run.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "props/train/gathered_ranks.h"
#include "props/train/sim_options.h"
#include "props/train/subject.h"
#include "sim/scheduler.h"
#include "sim/schedulers/random.h"
#include "sim/world/sim_world.h"

namespace zeroproof::train {
namespace {

void run_windows(const TrainScenario& scenario, const TrainCell& cell, Runtime& runtime,
                 EngineTarget& target, RankRun& run) {
  try {
    for (std::int64_t step = 0; step < cell.steps; ++step) {
      Pass pass(scenario, cell, target, step);
      scenario.window(pass);
      run.windows.push_back(target.take_values());
      run.live_bytes.push_back(runtime.memory().stats(Placement::device).live_bytes);
    }
  } catch (...) {
    run.has_changed_gradients = target.has_changed_gradients();
    throw;
  }
}

void run_rank(const TrainScenario& scenario, const TrainCell& cell, Runtime& runtime,
              const EngineTarget::Options& options, RankRun& run) {
  const Subject* const subject = cell.subject;
  const std::unique_ptr<Runtime> decorated =
      subject && subject->decorate_runtime ? subject->decorate_runtime(runtime) : nullptr;
  EngineTarget target(scenario, cell, decorated ? *decorated : runtime, options);
  try {
    run_windows(scenario, cell, runtime, target, run);
  } catch (const EngineError&) {
    run.error = std::current_exception();
    return;
  }
  run.loss_scale = target.engine(0).loss_scale();
  run.memory = runtime.memory().stats(Placement::device);
}

// Decides which node runs next on one rank, and keeps what was decided. Ranks that share an order
// take the decisions of the rank that came there first, as long as they are asked the same.
class NodeChooser final : public Chooser {
 public:
  struct Shared {
    std::vector<std::size_t> options;
    Choices taken;
  };

  NodeChooser(Chooser& inner, Shared* shared, Choices& log)
      : inner_(inner), shared_(shared), log_(log) {}

  std::size_t choose(const ChoicePoint& at) override {
    const std::size_t taken = decide(at);
    if (at.options.size() > 1) log_.push_back(static_cast<std::uint32_t>(taken));
    return taken;
  }

 private:
  std::size_t decide(const ChoicePoint& at) {
    if (!shared_ || at.options.size() == 1) return inner_.choose(at);
    const std::size_t place = log_.size();
    const bool is_known = place < shared_->taken.size();
    if (is_known && shared_->options[place] == at.options.size()) return shared_->taken[place];
    const std::size_t taken = inner_.choose(at);
    if (is_known) return taken;
    shared_->options.push_back(at.options.size());
    shared_->taken.push_back(static_cast<std::uint32_t>(taken));
    return taken;
  }

  Chooser& inner_;
  Shared* shared_;
  Choices& log_;
};

// `nodes_of(rank)`: who decides which node runs next; null for PyTorch's order.
template <class World, class NodesOf>
CellRun run_world(World& world, const TrainScenario& scenario, const TrainCell& cell,
                  const CellRunOptions& options, NodesOf nodes_of) {
  CellRun run;
  run.ranks.resize(static_cast<std::size_t>(cell.world_size));
  run.nodes.resize(run.ranks.size());
  NodeChooser::Shared shared;
  NodeChooser::Shared* const sharing = options.nodes == NodeOrder::shared ? &shared : nullptr;
  const RankScopes scopes(cell.subject);
  const auto errors = world.try_run([&](Runtime& runtime) {
    const auto scope = scopes.of_rank();
    const auto rank = static_cast<std::size_t>(runtime.rank());
    EngineTarget::Options target{.collects_values = options.collects_values};
    if (options.watch) options.watch->attach(rank, target);
    std::optional<NodeChooser> nodes;
    if (Chooser* chooser = nodes_of(runtime.rank())) {
      nodes.emplace(*chooser, options.node_choosers.empty() ? sharing : nullptr, run.nodes[rank]);
      target.order = &*nodes;
    }
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

Chooser* given_chooser(const CellRunOptions& options, int rank) {
  if (options.node_choosers.empty()) return nullptr;
  return options.node_choosers.at(static_cast<std::size_t>(rank));
}

CellRun run_on_cuda(const TrainScenario& scenario, const TrainCell& cell,
                    const CellRunOptions& options) {
  CudaWorldOptions world_options;
  world_options.world_size = cell.world_size;
  world_options.device = cell.device;
  world_options.timeout_ms = cell.timeout_ms;
  world_options.collectives = cell.collectives;
  if (options.watch) world_options.observers = options.watch->observers();
  CudaWorld world(world_options, *cell.gpus);
  return run_world(world, scenario, cell, options,
                   [&](int rank) { return given_chooser(options, rank); });
}

CellRun run_on_host(const TrainScenario& scenario, const TrainCell& cell,
                    const CellRunOptions& options) {
  HostWorldOptions world_options;
  world_options.world_size = cell.world_size;
  world_options.degrees = {.sequence = cell.sequence_degree, .tensor = cell.tensor_degree};
  world_options.device = cell.device;
  world_options.timeout_ms = cell.timeout_ms;
  world_options.job = cell.job;
  if (options.watch) world_options.observers = options.watch->observers();
  HostWorld world(world_options);
  return run_world(world, scenario, cell, options,
                   [&](int rank) { return given_chooser(options, rank); });
}

CellRun run_simulated(const TrainScenario& scenario, const TrainCell& cell,
                      const CellRunOptions& options) {
  std::unique_ptr<Scheduler> scheduler;
  if (!options.chooser) {
    auto made = make_scheduler(cell.sim->scheduler, cell.sim->seed);
    if (!made) throw std::invalid_argument(made.error().text);
    scheduler = std::move(*made);
    scheduler->new_execution();
  }
  SimWorldOptions world_options = sim_options_of(cell);
  if (options.watch) world_options.observers = options.watch->observers();
  SimWorld world(world_options, options.chooser ? *options.chooser : *scheduler);
  CellRun run = run_world(world, scenario, cell, options, [&](int rank) -> Chooser* {
    if (Chooser* given = given_chooser(options, rank)) return given;
    return options.nodes == NodeOrder::faithful ? nullptr : &world.chooser(rank);
  });
  run.findings = world.findings();
  run.steps = world.steps();
  run.state = world.fingerprint();
  run.order_class = world.order_class();
  return run;
}

}  // namespace

bool CellRun::has_failed() const {
  return !findings.empty() ||
         std::ranges::any_of(ranks, [](const RankRun& run) { return run.error != nullptr; });
}

std::size_t CellRun::deciding_rank() const {
  return static_cast<std::size_t>(first_failed(ranks) - ranks.begin());
}

CellRun run_ranks(const TrainScenario& scenario, const TrainCell& cell,
                  const CellRunOptions& options) {
  if (cell.sim || options.chooser) return run_simulated(scenario, cell, options);
  CellRun run =
      cell.gpus ? run_on_cuda(scenario, cell, options) : run_on_host(scenario, cell, options);
  gather_ranks(cell.job.get(), run.ranks);
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
