#include <algorithm>
#include <nlohmann/json.hpp>

#include "props/report/engine_report.h"
#include "props/report/json_values.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson settings_json(const Schedule& schedule) {
  OrderedJson settings = OrderedJson::object();
  for (const auto& [key, value] : schedule.settings)
    if (key != "found") settings[key] = value;
  return settings;
}

OrderedJson certificate_json(const PctCertificate& certificate) {
  return {{"tasks", certificate.tasks},
          {"choices", certificate.steps},
          {"depth", certificate.depth},
          {"runs", certificate.runs},
          {"miss_chance", certificate.miss_chance()}};
}

OrderedJson sites_json(const std::vector<train::SiteCount>& sites) {
  OrderedJson all = OrderedJson::array();
  for (const train::SiteCount& site : sites)
    all.push_back({{"site", site.site},
                   {"choices", site.choices},
                   {"widest", site.widest},
                   {"taken", site.taken.size()},
                   {"pairs", site.pairs},
                   {"pairs_in_both_orders", site.pairs_in_both_orders}});
  return all;
}

OrderedJson sometimes_json(const std::vector<train::SometimesCount>& conditions) {
  OrderedJson all = OrderedJson::array();
  for (const train::SometimesCount& condition : conditions)
    all.push_back({{"condition", condition.name},
                   {"executions", condition.executions},
                   {"is_required", condition.is_required}});
  return all;
}

OrderedJson finding_json_of(const train::EngineFinding& finding) {
  return {{"kind", finding.finding.kind},
          {"text", finding.finding.text},
          {"rank", finding.finding.rank},
          {"failing_executions", finding.failing_executions},
          {"first_execution", finding.first_execution},
          {"schedule", schedule_text(finding.schedule)},
          {"minimized",
           {{"is_minimal", finding.is_minimal},
            {"scenario", finding.minimized.scenario},
            {"settings", settings_json(finding.minimized)},
            {"events", finding.events},
            {"choices", finding.minimized.choices.size()},
            {"decisions", finding.decisions},
            {"runs", finding.runs},
            {"schedule", schedule_text(finding.minimized)}}}};
}

OrderedJson run_json(const TimedExploration& exploration) {
  const train::EngineExplorationReport& report = exploration.report;
  const train::EngineExplorationOptions& options = report.options;
  const Schedule plain = train::schedule_of(options.engine_case, options.seed, {}, {});
  OrderedJson findings = OrderedJson::array();
  for (const train::EngineFinding& finding : report.findings)
    findings.push_back(finding_json_of(finding));
  OrderedJson run = {
      {"scenario", plain.scenario},
      {"settings", settings_json(plain)},
      {"scheduler", options.scheduler},
      {"status", exploration_status_name(status_of(report))},
      {"refusal", report.refusal.empty() ? OrderedJson(nullptr) : OrderedJson(report.refusal)},
      {"executions", report.executions},
      {"events", report.events},
      {"seconds", exploration.seconds},
      {"choices", report.choices},
      {"deepest", report.deepest},
      {"results", report.results},
      {"ends", report.ends},
      {"classes", report.classes},
      {"shards", options.shards},
      {"shard", options.shard},
      {"has_exhausted", report.has_exhausted}};
  run["states"] = report.states ? OrderedJson(*report.states) : OrderedJson(nullptr);
  run["transitions"] = report.transitions ? OrderedJson(*report.transitions) : OrderedJson(nullptr);
  run["certificate"] =
      report.certificate ? certificate_json(*report.certificate) : OrderedJson(nullptr);
  run["sites"] = sites_json(report.sites);
  run["sometimes"] = sometimes_json(report.sometimes);
  run["findings"] = findings;
  return run;
}

OrderedJson host_json(const train::RuntimeComparison& host) {
  return {{"tokens", host.tokens},
          {"values", host.values},
          {"node_choices", host.node_choices},
          {"is_equal", host.difference.empty()},
          {"difference", host.difference}};
}

OrderedJson replay_json_of(const train::EngineReplay& replay) {
  OrderedJson findings = OrderedJson::array();
  for (const train::CaseFinding& finding : replay.run.findings)
    findings.push_back({{"kind", finding.kind}, {"text", finding.text}, {"rank", finding.rank}});
  OrderedJson one = {
      {"source", replay.source},
      {"scenario", replay.schedule.scenario},
      {"settings", settings_json(replay.schedule)},
      {"events", replay.run.steps},
      {"findings", findings},
      {"expected", replay.expected ? OrderedJson(*replay.expected) : OrderedJson(nullptr)},
      {"reproduced", replay.is_reproduced()},
      {"divergence", replay.divergence}};
  one["host"] = replay.host ? host_json(*replay.host) : OrderedJson(nullptr);
  return one;
}

JUnitCase case_of_status(const TimedExploration& exploration) {
  const train::EngineExplorationReport& report = exploration.report;
  const train::EngineExplorationOptions& options = report.options;
  JUnitCase one;
  one.suite = "explore";
  one.name = options.engine_case.cell.scenario;
  for (const auto& [key, value] : train::settings_of(options.engine_case))
    one.name.append(" ").append(key).append("=").append(value);
  const ExplorationStatus status = status_of(report);
  if (status == ExplorationStatus::held) return one;
  one.outcome = status == ExplorationStatus::falsified ? JUnitOutcome::failed : JUnitOutcome::error;
  one.text = std::string(exploration_status_name(status)) + " " + report.divergence;
  for (const train::EngineFinding& finding : report.findings)
    one.text += finding.finding.kind + ": " + finding.finding.text + "\n" +
                schedule_text(finding.minimized) + "\n";
  return one;
}

}  // namespace

ExplorationStatus status_of(const train::EngineExplorationReport& report) {
  if (!report.divergence.empty()) return ExplorationStatus::nondeterminism;
  if (!report.findings.empty()) return ExplorationStatus::falsified;
  if (report.end == ExploreEnd::interrupted) return ExplorationStatus::interrupted;
  const bool covers_all = report.options.scheduler == "exhaustive";
  const auto is_missed = [](const train::SometimesCount& condition) {
    return condition.is_required && condition.executions == 0;
  };
  const bool is_vacuous =
      report.refusal.empty() && std::ranges::any_of(report.sometimes, is_missed);
  return is_vacuous || (covers_all && !report.has_exhausted) ? ExplorationStatus::inconclusive
                                                             : ExplorationStatus::held;
}

std::string engine_exploration_json(const std::vector<TimedExploration>& explorations,
                                    std::uint64_t seed) {
  OrderedJson runs = OrderedJson::array();
  for (const TimedExploration& exploration : explorations) runs.push_back(run_json(exploration));
  return document_text<OrderedJson>(
      {{"schema", "zeroproof.explore_engine/1"}, {"seed", seed}, {"runs", runs}});
}

std::vector<JUnitCase> engine_exploration_cases(const std::vector<TimedExploration>& explorations) {
  std::vector<JUnitCase> cases;
  for (const TimedExploration& exploration : explorations)
    cases.push_back(case_of_status(exploration));
  return cases;
}

std::string engine_replay_json(const std::vector<train::EngineReplay>& replays) {
  OrderedJson all = OrderedJson::array();
  for (const train::EngineReplay& replay : replays) all.push_back(replay_json_of(replay));
  return document_text<OrderedJson>({{"schema", "zeroproof.replay_engine/1"}, {"schedules", all}});
}

std::vector<JUnitCase> engine_replay_cases(const std::vector<train::EngineReplay>& replays) {
  std::vector<JUnitCase> cases;
  for (const train::EngineReplay& replay : replays) {
    JUnitCase one;
    one.suite = "replay";
    one.name = replay.source;
    const bool is_equal = !replay.host || replay.host->difference.empty();
    if (!replay.is_reproduced() || !replay.run.findings.empty() || !is_equal) {
      one.outcome = replay.is_reproduced() ? JUnitOutcome::failed : JUnitOutcome::error;
      one.text = engine_replay_text(replay, Palette());
    }
    cases.push_back(one);
  }
  return cases;
}

}  // namespace zeroproof
