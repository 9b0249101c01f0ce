#include "props/train/fault_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/precision/loss_scaler.h"
#include "props/train/fault_rank.h"
#include "props/train/runtime_comparison.h"
#include "props/train/sim_options.h"
#include "props/train/stream_judge.h"
#include "props/train/subject.h"
#include "sim/world/history.h"
#include "sim/world/sim_world.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kStepsMax = 2'000'000;  // thousands of windows

SimWorldOptions world_options(const TrainCell& cell, sim::PlannedFaults& faults,
                              StreamJudge* streams) {
  SimWorldOptions options = sim_options_of(cell);
  options.device = Device::cpu();
  options.faults = &faults;
  options.steps_max = kStepsMax;
  for (int rank = 0; rank < cell.world_size; ++rank)
    options.observers.push_back(
        {.faults = &faults.point(rank), .accesses = streams ? &streams->observer(rank) : nullptr});
  return options;
}

// What a rank ends with when a program ended, its own or another's.
bool is_of_ended_world(const std::exception_ptr& error) {
  if (!error) return false;
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

class FaultyProgram {
 public:
  FaultyProgram(const TrainScenario& scenario, const TrainCell& cell,
                const FaultRunOptions& options, Chooser& chooser)
      : scenario_(scenario),
        cell_(cell),
        options_(options),
        chooser_(chooser),
        faults_(cell.world_size, options.plan),
        progress_(options.loaded ? *options.loaded : loaded_) {
    run_.plan = options.plan;
    run_.cell.ranks.resize(static_cast<std::size_t>(cell.world_size));
  }

  FaultRun run() {
    while (run_world()) ++run_.worlds;
    if (options_.plan.empty() && !run_.cell.has_failed()) run_.places = places();
    for (std::size_t fault = 0; fault < options_.plan.size(); ++fault)
      if (faults_.has_struck(fault)) run_.struck.push_back(options_.plan[fault]);
    run_.redone = progress_.redone;
    run_.restored = progress_.restored;
    judge_scale();
    for (RankRun& rank : run_.cell.ranks)  // a step that a fault took away is counted
      for (WindowValues& window : rank.windows) window.counters.clear();
    return std::move(run_);
  }

 private:
  // True: it was ended by a fault, and a fresh one has to go on.
  bool run_world() {
    std::vector<std::exception_ptr> errors;
    std::optional<StreamJudge> streams;
    if (options_.judges_streams) streams.emplace(cell_.world_size);
    {
      SimWorldOptions options = world_options(cell_, faults_, streams ? &*streams : nullptr);
      options.origin = origin();
      SimWorld world(options, chooser_);
      const RankScopes scopes(cell_.subject);
      errors = world.try_run([&](Runtime& runtime) {
        const auto scope = scopes.of_rank();
        RankRun& rank = run_.cell.ranks[static_cast<std::size_t>(runtime.rank())];
        FaultRank(scenario_, cell_, runtime, faults_, progress_).run(rank);
      });
      run_.cell.findings = world.findings();
      run_.cell.steps += world.steps();
      run_.cell.state = world.fingerprint();
      classes_.add(world.order_class().low);
      classes_.add(world.order_class().high);
      run_.cell.order_class = classes_.value();
    }
    const bool has_ended = is_ended_by_fault(errors);
    if (streams && !has_ended) judge_streams(streams->finish());
    for (std::size_t rank = 0; rank < errors.size(); ++rank)
      run_.cell.ranks[rank].error = has_ended ? nullptr : errors[rank];
    return has_ended && run_.problem.empty() && run_.cell.findings.empty();
  }

  // What a fresh world finds: checkpoints, and the windows that stay.
  Fingerprint origin() const {
    if (run_.worlds == 1) return {};
    sim::History found;
    for (const Fingerprint& part : {progress_.checkpoints.fingerprint(), values_of(run_.cell)}) {
      found.add(part.low);
      found.add(part.high);
    }
    found.add(static_cast<std::uint64_t>(progress_.saved));
    return found.value();
  }

  bool is_ended_by_fault(const std::vector<std::exception_ptr>& errors) {
    const std::size_t due = due_of_all();
    if (due >= options_.plan.size() || !faults_.has_struck(due)) return false;
    const sim::Fault& fault = options_.plan[due];
    if (!sim::ends_program(fault.kind, fault.rank)) return false;
    const auto others = std::ranges::count_if(errors, is_of_ended_world);
    if (others == 0) return false;
    if (std::cmp_less(others, errors.size())) {
      const bool is_error = std::ranges::any_of(
          errors, [](const auto& error) { return error && !is_of_ended_world(error); });
      if (is_error) return false;
      run_.problem = "rank_went_on";
      run_.problem_text = "a rank came to its end though the program of another had ended";
    }
    faults_.recover_all(due + 1);
    return true;
  }

  std::size_t due_of_all() const {
    std::size_t due = 0;
    for (int rank = 0; rank < cell_.world_size; ++rank)
      due = std::max(due, faults_.due_number(rank));
    return due;
  }

  std::vector<sim::Fault> places() const {
    std::vector<sim::Fault> places = faults_.places(options_.kinds);
    std::erase_if(places, [&](const sim::Fault& fault) {
      const bool is_late = std::cmp_greater_equal(fault.window, fault_windows(cell_.steps));
      const bool is_unseen =
          fault.kind == sim::FaultKind::overflow && !checks_overflow(scenario_, cell_);
      return is_late || is_unseen;
    });
    return places;
  }

  void judge_streams(const PropertiesReport& report) {
    if (!report.is_falsified() || !run_.problem.empty()) return;
    const Finding& first = report.falsified.front();
    run_.problem = first.property->number;
    run_.problem_text = fmt::format("{}: {}", first.property->id, first.text);
  }

  // Ranks decide together, so they scale alike.
  void judge_scale() {
    if (run_.cell.has_failed() || !run_.problem.empty()) return;
    for (std::size_t rank = 1; rank < run_.cell.ranks.size(); ++rank) {
      const double ours = run_.cell.ranks[rank].loss_scale;
      const double first = run_.cell.ranks[0].loss_scale;
      if (ours == first) continue;
      run_.problem = "ranks_differ";
      run_.problem_text = fmt::format("rank {} scales by {}, and rank 0 by {}", rank, ours, first);
    }
  }

  const TrainScenario& scenario_;
  const TrainCell& cell_;
  const FaultRunOptions& options_;
  Chooser& chooser_;
  sim::PlannedFaults faults_;
  LoadedStates loaded_;  // where the caller shares none
  FaultProgress progress_;
  sim::History classes_;  // of all worlds
  FaultRun run_;
};

}  // namespace

bool checks_overflow(const TrainScenario& scenario, const TrainCell& cell) {
  const ZeroConfig config = config_of(scenario, cell);
  const bool has_flat_slices = cell.stage == 1 || cell.stage == 2;
  if (config.bf16.enabled) return config.bf16.check_grad_overflow && has_flat_slices;
  return LossScaler::of(config).kind() != LossScalerKind::none;
}

FaultRun run_with_faults(const TrainScenario& scenario, const TrainCell& cell,
                         const FaultRunOptions& options, Chooser& chooser) {
  return FaultyProgram(scenario, cell, options, chooser).run();
}

}  // namespace zeroproof::train
