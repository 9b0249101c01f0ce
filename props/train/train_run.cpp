#include "props/train/train_run.h"

#include <fmt/format.h>

#include "props/train/baseline_target.h"
#include "props/train/configured_scenario.h"
#include "props/train/gathered_ranks.h"
#include "props/train/rank_trace.h"
#include "props/train/run_judge.h"
#include "props/train/run_verdict.h"
#include "props/train/train_facts.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kOrderSeed = 38;

// One more run, with nodes in another order: the same numbers, and collectives that fit.
void try_order(const TrainScenario& scenario, const TrainCell& cell, const CellRun& usual,
               TrainFacts& facts) {
  TrainCell ordered = cell;
  ordered.order_seed = kOrderSeed;
  const CellRun other = run_ranks(scenario, ordered, {.collects_values = true});
  facts.has_equal_orders = !other.has_failed();
  if (other.has_failed()) {
    facts.order_difference = fmt::format(
        "{} (--order-seed {})", text_of(other.ranks[other.deciding_rank()].error), kOrderSeed);
    return;
  }
  const Comparison comparison = compare(other.ranks[0].windows, usual.ranks[0].windows, cell);
  facts.has_equal_orders = comparison.is_equal;
  if (comparison.is_equal) return;
  const Difference& first = *comparison.first;
  facts.order_difference = fmt::format("{}[{}] is {} with --order-seed {}, else {}", first.name,
                                       first.index, first.engine, kOrderSeed, first.baseline);
}

// What the numbers of a run say; of one that was compared, or refused.
void judge_numbers(const TrainScenario& scenario, const CellRun& run, bool tries_orders,
                   TrainReport& report) {
  TrainFacts facts = facts_of(scenario, report.cell);
  if (!facts.refusal.empty()) facts.was_refused = report.refusal == facts.refusal;
  if (report.is_compared) {
    facts.is_equal = report.status == CellStatus::equal;
    facts.difference = report.error;
    facts.has_equal_ranks = !differing_ranks(run.ranks);
    facts.has_equal_step_counts = has_equal_step_counts(scenario, run.ranks[0].windows);
    const bool has_order = report.cell.stage < 3 && !report.cell.order_seed;
    if (tries_orders && has_order && report.status == CellStatus::equal)
      try_order(scenario, report.cell, run, facts);
  }
  PropertiesReport numbers;
  for (const Verdict& verdict : judge_training(facts)) numbers.add(verdict);
  if (!report.properties) report.properties.emplace();
  report.properties->merge(numbers);
}

// Collecting values issues collectives of its own, so what is judged is a run without it.
TrainReport judge_events(const TrainScenario& scenario, const TrainCell& cell) {
  RunJudge judge(scenario, cell);
  const CellRun run = run_ranks(scenario, cell, {.watch = &judge});
  TrainReport report = report_of(scenario, cell, run);
  report.properties = judge.finish(run);
  return report;
}

TrainReport not_applicable(const TrainScenario& scenario, const TrainCell& cell) {
  TrainReport report;
  report.cell = cell;
  report.status = CellStatus::not_applicable;
  report.error =
      fmt::format("{} has no --backward {}", scenario.name, backward_name(cell.backward));
  return report;
}

// One run without any comparison.
Result<TrainReport> record(const TrainScenario& scenario, const TrainCell& cell,
                           const std::string& path) {
  auto traces = RankTraces::create(path, scenario, cell);
  const Result<void> own = traces ? Result<void>() : tl::unexpected(traces.error());
  if (auto made = agree(cell.job.get(), own); !made) return tl::unexpected(made.error());
  const CellRun run = run_ranks(scenario, cell, {.watch = traces->get()});
  const auto written = agree(cell.job.get(), (*traces)->finish());
  if (!written) return tl::unexpected(written.error());
  return report_of(scenario, cell, run);
}

}  // namespace

bool TrainReport::is_bad() const {
  return status == CellStatus::different || status == CellStatus::failed ||
         (properties && properties->is_falsified());
}

TrainReport train(const TrainScenario& scenario, const TrainCell& cell, const TrainChecks& checks) {
  if (!is_applicable(scenario, cell)) return not_applicable(scenario, cell);
  std::optional<PropertiesReport> properties;
  if (checks.has_properties) {
    TrainReport judged = judge_events(scenario, cell);
    if (judged.status == CellStatus::failed) return judged;
    properties = std::move(judged.properties);
  }
  const bool is_compared = checks.has_baseline || checks.has_properties;
  const CellRun run = run_ranks(scenario, cell, {.collects_values = is_compared});
  TrainReport report = report_of(scenario, cell, run);
  report.properties = std::move(properties);
  if (!is_compared) return report;
  if (report.status == CellStatus::equal)
    check_baseline(scenario, run.ranks, run_baseline(scenario, cell), report);
  judge_numbers(scenario, run, checks.has_properties, report);
  return report;
}

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

namespace {

Result<TrainReport> train_here(const TrainCell& cell, const TrainOptions& options) {
  const auto named = find_scenario(cell.scenario);
  if (!named) return tl::unexpected(named.error());
  const TrainScenario scenario = configured(**named, cell);
  if (!options.trace_path.empty() && is_applicable(scenario, cell)) {
    auto recorded = record(scenario, cell, options.trace_path);
    const TrainChecks& checks = options.checks;
    const bool is_over = !recorded || (cell.job && recorded->status == CellStatus::failed);
    if (is_over || !(checks.has_baseline || checks.has_properties)) return recorded;
  }
  return train(scenario, cell, options.checks);
}

}  // namespace

Result<TrainReport> train(const TrainCell& cell, const TrainOptions& options) {
  if (!cell.job) return train_here(cell, options);
  try {
    return train_here(cell, options);
  } catch (const RuntimeFault&) {
    TrainReport report;
    report.cell = cell;
    report.status = CellStatus::failed;
    report.error = tell_others(*cell.job, std::current_exception());
    return report;
  }
}

}  // namespace zeroproof::train
