#include "props/train/fault_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/runtime/fault.h"
#include "engine/runtime/host/rendezvous.h"
#include "props/train/compare.h"
#include "props/train/engine_target.h"
#include "sim/world/sim_world.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kStepsMax = 200'000;  // hundreds of windows

// One rank of a run.
class FaultyRank {
 public:
  FaultyRank(const TrainScenario& scenario, const TrainCell& cell, Runtime& runtime,
             sim::PlannedFaults& faults, bool is_agreed)
      : scenario_(scenario),
        cell_(cell),
        faults_(faults),
        is_agreed_(is_agreed),
        rank_(runtime.rank()),
        target_(scenario, cell, runtime, {}) {}

  void run_faulty_window() {
    faults_.open(rank_);
    try {
      run_window(0);
    } catch (const sim::InjectedFault&) {
      if (!is_agreed_) throw;
    } catch (const host::GroupAborted&) {
      throw;
    } catch (const RuntimeFault&) {
      if (!is_agreed_) throw;
    }
    faults_.close(rank_);
  }

  // To the next boundary, whose step takes what came since the last one.
  void recover() {
    zero_grad();
    for (std::size_t engine = 0; engine < scenario_.engines(); ++engine) {
      Engine& it = target_.engine(engine);
      const std::int64_t steps = it.config().gradient_accumulation_steps;
      while (it.micro_steps() % steps != 0) {
        Pass pass(scenario_, cell_, target_, 0);
        pass.differentiate(pass.forward(engine), false, engine);
        it.step();
      }
    }
    zero_grad();
    target_.take_values();
  }

  WindowValues run_window(std::int64_t number) {
    Pass pass(scenario_, cell_, target_, number);
    scenario_.window(pass);
    return target_.take_values();
  }

 private:
  void zero_grad() {
    for (std::size_t engine = 0; engine < scenario_.engines(); ++engine) target_.zero_grad(engine);
  }

  const TrainScenario& scenario_;
  const TrainCell& cell_;
  sim::PlannedFaults& faults_;
  bool is_agreed_;  // all ranks meet the fault, and catch it
  int rank_;
  EngineTarget target_;
};

SimWorldOptions world_options(const TrainCell& cell, sim::PlannedFaults& faults) {
  SimWorldOptions options;
  options.world_size = cell.world_size;
  options.device = Device::cpu();
  options.faults = &faults;
  options.steps_max = kStepsMax;
  for (int rank = 0; rank < cell.world_size; ++rank)
    options.observers.push_back({.faults = &faults.point(rank)});
  return options;
}

bool ended(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const RuntimeFault&) {
    return true;
  } catch (const sim::RankAborted&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

FaultRun run_with_fault(const TrainScenario& scenario, const TrainCell& cell,
                        const FaultRunOptions& options, Chooser& chooser) {
  FaultRun run;
  run.cell.ranks.resize(static_cast<std::size_t>(cell.world_size));
  sim::PlannedFaults faults(cell.world_size);
  faults.plan(options.fault);
  SimWorld world(world_options(cell, faults), chooser);
  const auto errors = world.try_run([&](Runtime& runtime) {
    FaultyRank rank(scenario, cell, runtime, faults, options.fault && options.fault->rank < 0);
    rank.run_faulty_window();
    rank.recover();
    auto& windows = run.cell.ranks[static_cast<std::size_t>(runtime.rank())].windows;
    for (std::int64_t window = 1; window <= options.clean_windows; ++window)
      windows.push_back(rank.run_window(window));
  });
  for (std::size_t rank = 0; rank < errors.size(); ++rank)
    run.cell.ranks[rank].error = errors[rank];
  run.cell.findings = world.findings();
  run.cell.steps = world.steps();
  run.places = faults.places();
  run.has_struck = faults.has_struck();
  run.needs_fresh_world = std::ranges::all_of(
      run.cell.ranks, [](const RankRun& rank) { return rank.error && ended(rank.error); });
  return run;
}

std::string difference_after_fault(const FaultRun& run, const FaultRun& clean,
                                   const TrainCell& cell) {
  for (std::size_t rank = 0; rank < run.cell.ranks.size(); ++rank) {
    const RankRun& ours = run.cell.ranks[rank];
    if (ours.error) return fmt::format("rank {}: {}", rank, text_of(ours.error));
    const auto gradients_of = [](std::vector<WindowValues> windows) {
      for (WindowValues& window : windows)
        window = {.gradients = window.gradients, .outcomes = window.outcomes};
      return windows;
    };
    const Comparison comparison =
        compare(gradients_of(ours.windows), gradients_of(clean.cell.ranks[rank].windows), cell);
    if (!comparison.is_equal) {
      const Difference& first = *comparison.first;
      return fmt::format("rank {}: {}[{}] is {}, and {} without the fault", rank, first.name,
                         first.index, first.engine, first.baseline);
    }
  }
  for (const sim::Finding& finding : run.cell.findings) return finding.text;
  return {};
}

}  // namespace zeroproof::train
