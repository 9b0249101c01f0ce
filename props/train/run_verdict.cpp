#include "props/train/run_verdict.h"

#include <fmt/format.h>

#include <algorithm>

namespace zeroproof::train {
namespace {

void judge_errors(const TrainScenario& scenario, const CellRun& run, TrainReport& report) {
  if (!run.findings.empty()) {
    report.status = CellStatus::failed;
    report.error = run.findings.front().text;
    return;
  }
  const std::size_t rank = run.deciding_rank();
  const std::exception_ptr& error = run.ranks[rank].error;
  report.status = CellStatus::failed;
  report.error = fmt::format("rank {}: {}", rank, text_of(error));
  if (is_configuration_error(error) && is_configuration_refused(scenario, report.cell)) {
    report.status = CellStatus::refused;
    report.refusal = "configuration";
    return;
  }
  const auto id = engine_error_of(error);
  if (!id || id != expected_refusal(scenario, report.cell)) return;
  for (std::size_t other = 0; other < run.ranks.size(); ++other) {
    const std::exception_ptr& theirs = run.ranks[other].error;
    if (theirs && engine_error_of(theirs) == id) continue;
    report.error += fmt::format(" (but rank {}: {})", other, theirs ? text_of(theirs) : "went on");
    return;
  }
  if (id == EngineErrorId::manual_backward_unsupported && run.ranks[rank].has_changed_gradients) {
    report.error += " (but a gradient had changed by then)";
    return;
  }
  report.status = CellStatus::refused;
  report.refusal = engine_error_name(*id);
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

std::vector<WindowValues> without_gradients(std::vector<WindowValues> windows) {
  for (WindowValues& window : windows) window.gradients.clear();
  return windows;
}

}  // namespace

TrainReport report_of(const TrainScenario& scenario, const TrainCell& cell, const CellRun& run) {
  TrainReport report;
  report.cell = cell;
  const RankRun& first = run.ranks.front();
  report.steps = static_cast<std::int64_t>(first.windows.size());
  report.skipped_steps = std::ranges::count_if(first.windows, [](const WindowValues& window) {
    return !window.outcomes.empty() && window.outcomes.front().has_overflow;
  });
  report.live_bytes = first.memory.live_bytes;
  report.peak_bytes = first.memory.peak_bytes;
  if (cell.precision == Precision::fp16) report.loss_scale = first.loss_scale;
  if (run.has_failed()) {
    judge_errors(scenario, run, report);
  } else if (is_configuration_refused(scenario, cell)) {
    report.status = CellStatus::failed;
    report.error = "the configuration was not refused";
  } else if (const auto refusal = expected_refusal(scenario, cell)) {
    report.status = CellStatus::failed;
    report.error = fmt::format("{} was not raised", engine_error_name(*refusal));
  }
  return report;
}

std::optional<std::string> differing_ranks(const std::vector<RankRun>& runs) {
  TrainCell exact;
  exact.data = DataMode::exact;
  for (std::size_t rank = 1; rank < runs.size(); ++rank) {
    const Comparison comparison =
        compare(runs[rank].windows, runs[0].windows, exact, Compared::all_but_records);
    if (!comparison.is_equal)
      return fmt::format("rank {} and rank 0 differ in {}", rank, comparison.first->name);
  }
  return std::nullopt;
}

void check_baseline(const TrainScenario& scenario, const std::vector<RankRun>& runs,
                    const std::vector<WindowValues>& baseline, TrainReport& report) {
  report.is_compared = true;
  const auto zero = zero_gradient(scenario, baseline);
  if (reduces_in_step(config_of(scenario, report.cell)))
    report.comparison = compare(runs[0].windows, without_gradients(baseline), report.cell);
  else
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

}  // namespace zeroproof::train
