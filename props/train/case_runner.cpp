#include "props/train/case_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "props/train/baseline_target.h"
#include "props/train/run_judge.h"
#include "props/train/run_verdict.h"
#include "props/train/runtime_comparison.h"
#include "sim/fingerprint.h"

namespace zeroproof::train {
namespace {

// Of a run that failed without the world's having seen why.
std::string error_kind(const CellRun& run) {
  const auto id = engine_error_of(run.ranks[run.deciding_rank()].error);
  return id ? std::string(engine_error_name(*id)) : "error";
}

std::string kind_of(const CellRun& run, const TrainReport& report) {
  if (report.status == CellStatus::different)
    return differing_ranks(run.ranks) ? "ranks_differ" : "different";
  return run.has_failed() ? error_kind(run) : "not_refused";
}

// What the world saw explains the errors that followed, so those are not findings of their own.
void add_findings(const CellRun& run, const TrainReport& report, CaseRun& result) {
  const auto add = [&](CaseFinding finding) {
    if (!find_kind(result, finding.kind)) result.findings.push_back(std::move(finding));
  };
  for (const sim::Finding& finding : run.findings)
    add({std::string(sim::finding_name(finding.kind)), finding.text, finding.rank, finding.step});
  const bool is_wrong =
      report.status == CellStatus::different || report.status == CellStatus::failed;
  if (is_wrong && run.findings.empty()) add({kind_of(run, report), report.error, -1, run.steps});
  if (!report.properties || !result.findings.empty()) return;
  for (const Finding& finding : report.properties->falsified)
    add({std::string(finding.property->number),
         fmt::format("{}: {}", finding.property->id, finding.text), finding.rank, run.steps});
}

// Which runs are alike, and which are the same.
void sign(const CellRun& run, CaseRun& result) {
  StateBytes bytes;
  const Fingerprint values = values_of(run);
  bytes.add(values.low).add(values.high);
  for (const CaseFinding& finding : result.findings) bytes.add(finding.kind);
  result.result = bytes.fingerprint();
  bytes.add(run.state.low).add(run.state.high);
  for (const CaseFinding& finding : result.findings) bytes.add(finding.text).add(finding.step);
  result.state = bytes.fingerprint();
}

}  // namespace

const CaseFinding* find_kind(const CaseRun& run, const std::string& kind) {
  const auto at = std::ranges::find(run.findings, kind, &CaseFinding::kind);
  return at == run.findings.end() ? nullptr : &*at;
}

Result<CaseRunner> CaseRunner::create(const EngineCase& engine_case) {
  const auto scenario = find_scenario(engine_case.cell.scenario);
  if (!scenario) return tl::unexpected(scenario.error());
  if (!is_applicable(**scenario, engine_case.cell))
    return fail(ErrorCode::usage,
                fmt::format("{} has no --backward {}: name the other one",
                            engine_case.cell.scenario, backward_name(engine_case.cell.backward)));
  return CaseRunner(engine_case, **scenario);
}

CaseRun CaseRunner::run(Chooser& chooser) {
  if (case_.judge == Judge::host) return run_beside_host(chooser);
  std::optional<RunJudge> judge;
  if (case_.judge == Judge::events) judge.emplace(*scenario_, case_.cell);
  const CellRun run = run_ranks(*scenario_, case_.cell,
                                {.collects_values = !judge,
                                 .watch = judge ? &*judge : nullptr,
                                 .chooser = &chooser,
                                 .nodes = case_.nodes});
  TrainReport report = report_of(*scenario_, case_.cell, run);
  if (judge) report.properties = judge->finish(run);
  return conclude(run, std::move(report), {});
}

CaseRun CaseRunner::run_beside_host(Chooser& chooser) {
  const RuntimeComparison runs = compare_runtimes(case_, chooser);
  CaseFinding difference;
  if (!runs.difference.empty())
    difference = {"host_differs", runs.difference, -1, runs.simulated.steps};
  return conclude(runs.simulated, report_of(*scenario_, case_.cell, runs.simulated),
                  std::move(difference));
}

CaseRun CaseRunner::conclude(const CellRun& run, TrainReport report, CaseFinding also) {
  if (case_.judge != Judge::events && report.status == CellStatus::equal) {
    if (!baseline_) baseline_ = run_baseline(*scenario_, case_.cell);
    check_baseline(*scenario_, run.ranks, *baseline_, report);
  }
  CaseRun result;
  result.status = report.status;
  result.refusal = report.refusal;
  result.steps = run.steps;
  add_findings(run, report, result);
  if (result.findings.empty() && !also.kind.empty()) result.findings.push_back(std::move(also));
  sign(run, result);
  result.nodes = run.nodes;
  return result;
}

}  // namespace zeroproof::train
