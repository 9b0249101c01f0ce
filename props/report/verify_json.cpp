#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "props/exploration_status.h"
#include "props/report/conform_report.h"
#include "props/report/json_values.h"
#include "props/report/verify_report.h"

namespace zeroproof {
namespace {

std::string name_of(const train::EngineExplorationReport& report) {
  const train::TrainCell& cell = report.options.engine_case.cell;
  return fmt::format("{} stage {}", cell.scenario, cell.stage);
}

using OrderedJson = nlohmann::ordered_json;

OrderedJson replay_part(const VerifyReport& report) {
  return {{"name", "replay"},
          {"status", report.has_replay_held() ? "held" : "falsified"},
          {"traces", report.replay.traces.size()},
          {"traces_with_expected_findings", report.expected_findings},
          {"unexpected", report.unexpected}};
}

OrderedJson cell_json(const ExplorationReport& report) {
  OrderedJson falsified = OrderedJson::array();
  for (const ExplorationFinding& finding : report.findings) {
    falsified.push_back(finding.property->number);
  }
  return {{"scenario", report.options.scenario},
          {"policy", report.options.policy},
          {"mode", policy_mode_name(report.options.mode)},
          {"order_model", order_model_name(report.options.order_model)},
          {"latitude", order_model_name(report.options.order_model)},  // its name until 0.2
          {"params", report.options.params},
          {"status", exploration_status_name(status_of(report))},
          {"orders", report.orders_explored ? OrderedJson(report.orders_explored->text())
                                            : OrderedJson(nullptr)},
          {"falsified", falsified}};
}

OrderedJson exact_part(const VerifyReport& report) {
  OrderedJson runs = OrderedJson::array();
  for (const ExplorationReport& one : report.exact) runs.push_back(cell_json(one));
  return {{"name", "exact"},
          {"status", report.has_exact_held() ? "held" : "falsified"},
          {"runs", runs}};
}

OrderedJson upstream_part(const VerifyReport& report) {
  OrderedJson runs = OrderedJson::array();
  for (const ExplorationTable& table : report.upstream) {
    for (const ExplorationReport& one : table) runs.push_back(cell_json(one));
  }
  return {{"name", "upstream"},
          {"status", report.has_rediscovered() ? "caught" : "missed"},
          {"missed", report.not_caught},
          {"runs", runs}};
}

OrderedJson conform_part(const VerifyReport& report) {
  OrderedJson differing = OrderedJson::array();
  for (const ConformOutcome& one : report.conform.outcomes)
    if (one.status != ConformStatus::agreed) differing.push_back(one.path + ": " + one.detail);
  return {{"name", "conform"},
          {"status", report.has_conformed() ? "held" : "falsified"},
          {"runs", report.conform.outcomes.size()},
          {"agreed", report.conform.count(ConformStatus::agreed)},
          {"differing", differing}};
}

OrderedJson deepspeed_part(const VerifyReport& report) {
  return {{"name", "deepspeed"},
          {"status", report.has_deepspeed_agreed() ? "held" : "falsified"},
          {"runs", report.deepspeed.outcomes.size()},
          {"agreed", report.deepspeed.count(ConformStatus::agreed)},
          {"explained", report.deepspeed.count(ConformStatus::explained)}};
}

OrderedJson training_part(const VerifyReport& report) {
  using train::CellStatus;
  return {{"name", "train"},
          {"status", report.has_trained() ? "held" : "falsified"},
          {"cells", report.training.cells.size()},
          {"equal", report.training.count(CellStatus::equal)},
          {"refused", report.training.count(CellStatus::refused)},
          {"properties_held", report.training.properties_held()}};
}

OrderedJson engine_part(const VerifyReport& report) {
  std::uint64_t executions = 0;
  OrderedJson failed = OrderedJson::array();
  for (const train::EngineExplorationReport& one : report.engine) {
    executions += one.executions;
    if (!has_held(one)) failed.push_back(name_of(one));
  }
  return {{"name", "engine"},
          {"status", report.has_engine_held() ? "held" : "falsified"},
          {"explorations", report.engine.size()},
          {"executions", executions},
          {"failed", failed}};
}

OrderedJson mutation_part(const VerifyReport& report) {
  if (!report.mutation) return {{"name", "mutation"}, {"status", "skipped"}};
  const MutationRow& row = *report.mutation;
  OrderedJson missed = OrderedJson::array();
  for (const MutationRow::Missed& one : row.missed) missed.push_back(one.id);
  return {{"name", "mutation"},
          {"status", row.is_good() ? "caught" : "missed"},
          {"faults", row.faults},
          {"found", row.found},
          {"missed", missed},
          {"canary_found", row.is_canary_found},
          {"unmutated_clean", row.unmutated_findings.empty()}};
}

}  // namespace

std::string verify_json(const VerifyReport& report) {
  OrderedJson parts = {replay_part(report),   conform_part(report), deepspeed_part(report),
                       training_part(report), engine_part(report),  exact_part(report),
                       upstream_part(report), mutation_part(report)};
  const char* status = report.is_interrupted ? "interrupted"
                       : report.has_held()   ? "held"
                                             : "falsified";
  return document_text<OrderedJson>({{"schema", "zeroproof.verify/1"},
                                     {"seed", report.options.seed},
                                     {"quick", report.options.is_quick},
                                     {"status", status},
                                     {"parts", parts}});
}

std::vector<JUnitCase> verify_cases(const VerifyReport& report) {
  std::vector<JUnitCase> cases;
  JUnitCase replay{.suite = "replay", .name = "bundled traces"};
  for (const std::string& line : report.unexpected) replay.text += line + "\n";
  if (!report.has_replay_held()) replay.outcome = JUnitOutcome::failed;
  cases.push_back(replay);
  for (const JUnitCase& one : conform_cases(report.conform)) cases.push_back(one);
  for (const JUnitCase& one : conform_cases(report.deepspeed)) cases.push_back(one);
  JUnitCase training{.suite = "train", .name = "equality matrix"};
  if (!report.has_trained()) training.outcome = JUnitOutcome::failed;
  cases.push_back(training);
  for (const train::EngineExplorationReport& one : report.engine) {
    JUnitCase engine{.suite = "engine", .name = name_of(one)};
    if (!has_held(one)) {
      engine.outcome = JUnitOutcome::failed;
      engine.text = one.findings.empty() ? one.divergence : one.findings.front().finding.text;
    }
    cases.push_back(engine);
  }
  for (const ExplorationReport& one : report.exact) {
    JUnitCase exact{
        .suite = "exact",
        .name = fmt::format("{} {} N={}", one.options.scenario,
                            order_model_name(one.options.order_model), one.options.params)};
    const ExplorationStatus status = status_of(one);
    if (status != ExplorationStatus::held) {
      exact.outcome = JUnitOutcome::failed;
      exact.text = fmt::format("{} {}", exploration_status_name(status), falsified_numbers(one));
    }
    cases.push_back(exact);
  }
  JUnitCase upstream{.suite = "upstream", .name = "hazards rediscovered"};
  for (const std::string& policy : report.not_caught) upstream.text += "missed " + policy + "\n";
  if (!report.has_rediscovered()) upstream.outcome = JUnitOutcome::failed;
  cases.push_back(upstream);
  if (!report.mutation) return cases;
  for (const JUnitCase& one : mutation_cases(*report.mutation)) cases.push_back(one);
  return cases;
}

}  // namespace zeroproof
