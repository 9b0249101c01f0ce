#include "props/train/case_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "props/train/baseline_target.h"
#include "props/train/fault_run.h"
#include "props/train/run_judge.h"
#include "props/train/run_verdict.h"
#include "props/train/runtime_comparison.h"
#include "props/train/stream_judge.h"
#include "props/train/transform_watch.h"
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
  const bool is_refused =
      expected_refusal(*scenario_, case_.cell) || is_configuration_refused(*scenario_, case_.cell);
  if (!case_.faults.empty() && !is_refused) return run_under_faults(chooser);
  if (is_beside(case_.judge)) return run_beside_host(chooser);
  std::optional<RunJudge> judge;
  if (case_.judge == Judge::events) judge.emplace(*scenario_, case_.cell);
  std::optional<StreamJudge> streams;
  if (case_.judge == Judge::streams) streams.emplace(case_.cell.world_size);
  std::optional<TransformWatch> transforms;
  if (case_.judge == Judge::values && !scenario_->sometimes.empty())
    transforms.emplace(case_.cell.world_size);
  RunWatch* const watch = judge        ? static_cast<RunWatch*>(&*judge)
                          : streams    ? static_cast<RunWatch*>(&*streams)
                          : transforms ? &*transforms
                                       : nullptr;
  const CellRun run = run_ranks(
      *scenario_, case_.cell,
      {.collects_values = !judge, .watch = watch, .chooser = &chooser, .nodes = case_.nodes});
  TrainReport report = report_of(*scenario_, case_.cell, run);
  if (judge) report.properties = judge->finish(run);
  if (streams) report.properties = streams->finish();
  CaseRun result = conclude(run, std::move(report), {});
  if (transforms) result.reached = transforms->reached();
  return result;
}

std::set<std::string> CaseRunner::required() const {
  std::set<std::string> names;
  if (case_.judge == Judge::values && case_.faults.empty())
    names.insert(scenario_->sometimes.begin(), scenario_->sometimes.end());
  if (!faults_) return names;
  for (const sim::FaultKind kind : faults_->kinds())
    names.insert(fmt::format("fault {}", sim::fault_name(kind)));
  return names;
}

CaseRun CaseRunner::run_beside_host(Chooser& chooser) {
  const RuntimeComparison runs = compare_runtimes(case_, chooser);
  CaseFinding difference;
  if (!runs.difference.empty())
    difference = {"host_differs", runs.difference, -1, runs.simulated.steps};
  return conclude(runs.simulated, report_of(*scenario_, case_.cell, runs.simulated),
                  std::move(difference));
}

CaseRun CaseRunner::run_under_faults(Chooser& chooser) {
  if (!faults_) {
    FirstChooser first;
    faults_.emplace(
        run_with_faults(*scenario_, case_.cell, {.kinds = case_.faults, .plan = {}}, first).places);
  }
  const FaultRunOptions options{.kinds = case_.faults,
                                .plan = faults_->choose(chooser, case_.faults_max),
                                .judges_streams = case_.judge == Judge::streams,
                                .loaded = &loaded_};
  FaultRun run = run_with_faults(*scenario_, case_.cell, options, chooser);
  CaseFinding problem;
  if (!run.problem.empty()) problem = {run.problem, run.problem_text, -1, run.cell.steps};
  CaseRun result =
      conclude(run.cell, report_of(*scenario_, case_.cell, run.cell), std::move(problem));
  for (CaseFinding& finding : result.findings)
    for (const sim::Fault& fault : run.struck)
      finding.text += fmt::format(" (after {})", describe(fault));
  for (const sim::Fault& fault : run.struck)
    result.reached.insert(fmt::format("fault {}", sim::fault_name(fault.kind)));
  if (run.redone > 0) result.reached.insert("window run again");
  if (run.restored > 0) result.reached.insert("checkpoint loaded");
  if (run.worlds > 1) result.reached.insert("fresh world");
  return result;
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
  result.order_class = run.order_class;
  add_findings(run, report, result);
  if (result.findings.empty() && !also.kind.empty()) result.findings.push_back(std::move(also));
  sign(run, result);
  result.nodes = run.nodes;
  return result;
}

}  // namespace zeroproof::train
