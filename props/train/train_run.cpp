#include "props/train/train_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/runtime/host/host_world.h"
#include "model/autograd_error.h"
#include "props/train/baseline_target.h"
#include "props/train/engine_target.h"
#include "props/train/rank_trace.h"

namespace zeroproof::train {
namespace {

struct RankRun {
  std::vector<WindowValues> windows;
  double loss_scale = 1.0;
  MemoryStats memory;
  bool has_changed_gradients = false;
};

void run_rank(const TrainScenario& scenario, const TrainCell& cell, Runtime& runtime,
              const EngineTarget::Options& options, RankRun& run) {
  EngineTarget target(scenario, cell, runtime, options);
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
  run.loss_scale = target.engine(0).loss_scale();
  run.memory = runtime.memory().stats(Placement::device);
}

// The first rank of which something went wrong decides, an abort by another rank last.
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

void judge_errors(const TrainScenario& scenario, const std::vector<std::exception_ptr>& errors,
                  const std::vector<RankRun>& runs, TrainReport& report) {
  const auto is_engine_error = [](const std::exception_ptr& error) {
    return error && engine_error_of(error);
  };
  auto at = std::ranges::find_if(errors, is_engine_error);
  if (at == errors.end())
    at = std::ranges::find_if(errors, [](const auto& error) { return error != nullptr; });
  const auto rank = static_cast<std::size_t>(at - errors.begin());
  report.status = CellStatus::failed;
  report.error = fmt::format("rank {}: {}", rank, text_of(*at));
  if (is_configuration_error(*at) && is_configuration_refused(scenario, report.cell)) {
    report.status = CellStatus::refused;
    report.refusal = "configuration";
    return;
  }
  const auto id = engine_error_of(*at);
  if (!id || id != expected_refusal(scenario, report.cell)) return;
  if (id == EngineErrorId::e1 && runs[rank].has_changed_gradients) {
    report.error += " (but a gradient had changed by then)";
    return;
  }
  report.status = CellStatus::refused;
  report.refusal = engine_error_name(*id);
}

// Weights and optimizer state of all ranks, bitwise (P40).
std::optional<std::string> differing_ranks(const std::vector<RankRun>& runs) {
  TrainCell exact;
  exact.data = DataMode::exact;
  for (std::size_t rank = 1; rank < runs.size(); ++rank) {
    std::vector<WindowValues> ours = runs[rank].windows;
    std::vector<WindowValues> first = runs[0].windows;
    for (auto* windows : {&ours, &first})
      for (WindowValues& window : *windows) window.records.clear();
    const Comparison comparison = compare(ours, first, exact);
    if (!comparison.is_equal)
      return fmt::format("rank {} and rank 0 differ in {}", rank, comparison.first->name);
  }
  return std::nullopt;
}

std::optional<std::string> zero_gradient(const TrainScenario& scenario,
                                         const std::vector<WindowValues>& windows) {
  for (const std::string& name : zero_gradients(windows)) {
    const bool is_idle =
        !scenario.idle_parameters.empty() && name.starts_with(scenario.idle_parameters);
    if (!is_idle) return fmt::format("every gradient of {} is zero", name);
  }
  return std::nullopt;
}

void check_baseline(const TrainScenario& scenario, const std::vector<RankRun>& runs,
                    TrainReport& report) {
  report.is_compared = true;
  std::vector<WindowValues> baseline = run_baseline(scenario, report.cell);
  const auto zero = zero_gradient(scenario, baseline);
  if (reduces_in_step(config_of(scenario, report.cell)))
    for (WindowValues& window : baseline) window.gradients.clear();
  report.comparison = compare(runs[0].windows, baseline, report.cell);
  auto problem = differing_ranks(runs);
  if (!problem) problem = zero;
  if (!problem && !report.comparison.is_equal)
    problem = fmt::format("{} differs from the baseline", report.comparison.first->name);
  if (!problem) return;
  report.comparison.is_equal = false;
  report.status = CellStatus::different;
  report.error = *problem;
}

TrainReport run_cell(const TrainScenario& scenario, const TrainCell& cell, bool checks_baseline,
                     RankTraces* traces) {
  TrainReport report;
  report.cell = cell;
  if (!is_applicable(scenario, cell)) {
    report.status = CellStatus::not_applicable;
    report.error =
        fmt::format("{} has no --backward {}", scenario.name, backward_name(cell.backward));
    return report;
  }
  std::vector<RankRun> runs(static_cast<std::size_t>(cell.world_size));
  HostWorldOptions world_options;
  world_options.world_size = cell.world_size;
  world_options.device = Device::cpu();
  if (traces) world_options.observers = traces->observers();
  HostWorld world(world_options);
  const auto errors = world.try_run([&](Runtime& runtime) {
    const auto rank = static_cast<std::size_t>(runtime.rank());
    EngineTarget::Options options{.collects_values = checks_baseline};
    if (traces) traces->attach(rank, options);
    run_rank(scenario, cell, runtime, options, runs[rank]);
  });
  report.steps = static_cast<std::int64_t>(runs[0].windows.size());
  report.live_bytes = runs[0].memory.live_bytes;
  report.peak_bytes = runs[0].memory.peak_bytes;
  if (cell.precision == Precision::fp16) report.loss_scale = runs[0].loss_scale;
  if (std::ranges::any_of(errors, [](const auto& error) { return error != nullptr; })) {
    judge_errors(scenario, errors, runs, report);
  } else if (is_configuration_refused(scenario, cell)) {
    report.status = CellStatus::failed;
    report.error = "the configuration was not refused";
  } else if (const auto refusal = expected_refusal(scenario, cell)) {
    report.status = CellStatus::failed;
    report.error = fmt::format("{} was not raised", engine_error_name(*refusal));
  } else if (checks_baseline) {
    check_baseline(scenario, runs, report);
  }
  return report;
}

}  // namespace

std::string_view status_name(CellStatus status) {
  switch (status) {
    case CellStatus::equal:
      return "equal";
    case CellStatus::different:
      return "different";
    case CellStatus::refused:
      return "refused";
    case CellStatus::failed:
      return "failed";
    case CellStatus::not_applicable:
      break;
  }
  return "not_applicable";
}

TrainReport train(const TrainScenario& scenario, const TrainCell& cell, bool checks_baseline) {
  return run_cell(scenario, cell, checks_baseline, nullptr);
}

Result<TrainReport> train(const TrainCell& cell, const TrainOptions& options) {
  const auto scenario = find_scenario(cell.scenario);
  if (!scenario) return tl::unexpected(scenario.error());
  // Collecting values issues collectives of its own, so a trace is of a run without it.
  if (!options.trace_path.empty()) {
    auto traces = RankTraces::create(options.trace_path, **scenario, cell);
    if (!traces) return tl::unexpected(traces.error());
    const TrainReport report = run_cell(**scenario, cell, false, traces->get());
    if (auto written = (*traces)->finish(); !written) return tl::unexpected(written.error());
    if (!options.checks_baseline) return report;
  }
  return run_cell(**scenario, cell, options.checks_baseline, nullptr);
}

}  // namespace zeroproof::train
