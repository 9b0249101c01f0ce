#include "props/report/verify_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "props/exploration_status.h"
#include "props/report/text.h"

namespace zeroproof {
namespace {

using Failures = std::vector<VerifyFailure>;

std::string held_word(bool has_held) {
  return has_held ? "held" : "FALSIFIED";
}
std::string caught_word(bool has_caught) {
  return has_caught ? "caught" : "MISSED";
}

VerifyPart part_of_replay(const VerifyReport& report) {
  std::int64_t tasks = 0;
  std::uint64_t calls = 0;
  for (const TraceReplay& trace : report.replay.traces) {
    if (trace.queue) tasks += trace.queue->matched;
    if (trace.state) calls += trace.state->matched;
  }
  Failures failures;
  for (const std::string& line : report.unexpected)
    failures.push_back({"UNEXPECTED", visible(line)});
  return {held_word(report.has_replay_held()), "replay",
          fmt::format("{} bundled traces: {} graph tasks and {} manager calls derived; {} traces "
                      "have known findings",
                      report.replay.traces.size(), tasks, calls, report.expected_findings),
          std::move(failures)};
}

std::optional<VerifyPart> part_of_conform(const VerifyReport& report) {
  if (report.conform.outcomes.empty()) return std::nullopt;
  std::set<std::string> programs;
  Failures failures;
  for (const ConformOutcome& one : report.conform.outcomes) {
    programs.insert(one.program);
    if (one.status != ConformStatus::agreed)
      failures.push_back({std::string(conform_status_name(one.status)),
                          fmt::format("{}: {}", visible(one.path), visible(one.detail))});
  }
  return VerifyPart{held_word(report.has_conformed()), "conform",
                    fmt::format("{} of {} runs of {} PyTorch programs agree, hooks and numbers",
                                report.conform.count(ConformStatus::agreed),
                                report.conform.outcomes.size(), programs.size()),
                    std::move(failures)};
}

std::optional<VerifyPart> part_of_deepspeed(const VerifyReport& report) {
  if (report.deepspeed.outcomes.empty()) return std::nullopt;
  Failures failures;
  for (const ConformOutcome& one : report.deepspeed.outcomes)
    if (one.status != ConformStatus::agreed && one.status != ConformStatus::explained)
      failures.push_back({std::string(conform_status_name(one.status)),
                          fmt::format("{}: {}", visible(one.program), visible(one.detail))});
  return VerifyPart{
      held_word(report.has_deepspeed_agreed()), "deepspeed",
      fmt::format("{} of {} recorded training runs: the engine's order, collectives and numbers "
                  "agree; {} differ for a stated reason",
                  report.deepspeed.count(ConformStatus::agreed), report.deepspeed.outcomes.size(),
                  report.deepspeed.count(ConformStatus::explained)),
      std::move(failures)};
}

VerifyPart part_of_training(const VerifyReport& report) {
  using train::CellStatus;
  Failures failures;
  for (const train::TrainReport& one : report.training.cells)
    if (one.is_bad())
      failures.push_back(
          {"FALSIFIED",
           fmt::format(
               "zeroproof train {} --check-properties: {}", train::flags_of(one.cell),
               visible(one.error.empty() ? one.properties->falsified.front().text : one.error))});
  return {
      held_word(report.has_trained()), "train",
      fmt::format("{} of {} cells of the equality matrix (stages 0-3, 1-8 ranks, four "
                  "precisions) equal the unsharded baseline; {} refused as documented; {} "
                  "properties held",
                  report.training.count(CellStatus::equal), report.training.cells.size(),
                  report.training.count(CellStatus::refused), report.training.properties_held()),
      std::move(failures)};
}

VerifyPart part_of_engine(const VerifyReport& report) {
  std::uint64_t executions = 0;
  Failures failures;
  for (const train::EngineExplorationReport& one : report.engine) {
    executions += one.executions;
    if (has_held(one)) continue;
    const train::TrainCell& cell = one.options.engine_case.cell;
    failures.push_back(
        {"FALSIFIED",
         fmt::format(
             "zeroproof explore {} --stage {} --judge streams: {}", cell.scenario, cell.stage,
             visible(one.findings.empty() ? one.divergence : one.findings.front().finding.text))});
  }
  return {held_word(report.has_engine_held()), "engine",
          fmt::format("{} of {} explorations of the real engine held: every scenario, stages 0 to "
                      "3, in {} orders of ranks and streams",
                      report.engine.size() - failures.size(), report.engine.size(), executions),
          std::move(failures)};
}

VerifyPart part_of_exact(const VerifyReport& report) {
  OrderCount orders;
  Failures failures;
  for (const ExplorationReport& one : report.exact) {
    if (one.orders_explored) orders += *one.orders_explored;
    const ExplorationStatus status = status_of(one);
    if (status == ExplorationStatus::held) continue;
    failures.push_back({std::string(exploration_status_name(status)),
                        fmt::format("{} {} N={}: {}", one.options.scenario,
                                    order_model_name(one.options.order_model), one.options.params,
                                    falsified_numbers(one))});
  }
  return {held_word(report.has_exact_held()), "exact",
          fmt::format("{} of {} explorations held: {} scenarios, both order models, N = {}; {} "
                      "orders, each counted a second way",
                      report.exact.size() - failures.size(), report.exact.size(),
                      builtin_scenarios().size(), report.options.is_quick ? "4" : "4 and 8",
                      orders.text()),
          std::move(failures)};
}

VerifyPart part_of_upstream(const VerifyReport& report) {
  std::size_t findings = 0;
  for (const ExplorationTable& table : report.upstream)
    for (const ExplorationReport& one : table) findings += one.findings.empty() ? 0 : 1;
  Failures failures;
  for (const std::string& policy : report.not_caught)
    failures.push_back({"MISSED", "no property was falsified under " + policy});
  return {caught_word(report.has_rediscovered()), "upstream",
          fmt::format("{} explorations of upstream's policies rediscovered a hazard", findings),
          std::move(failures)};
}

std::optional<VerifyPart> part_of_mutation(const VerifyReport& report) {
  if (!report.mutation) return std::nullopt;
  const MutationRow& row = *report.mutation;
  Failures failures;
  for (const MutationRow::Missed& one : row.missed)
    failures.push_back({"MISSED", fmt::format("{}: {}", one.id, visible(one.sentence))});
  for (const std::string& finding : row.unmutated_findings)
    failures.push_back({"FALSIFIED", visible(finding)});
  return VerifyPart{
      caught_word(row.is_good()), "mutation",
      fmt::format("{} of {} faults found without a hint; canary {}; unmutated engine {} in {} "
                  "executions",
                  row.found, row.faults, row.is_canary_found ? "found" : "missed",
                  row.unmutated_findings.empty() ? "clean" : "NOT clean", row.unmutated_executions),
      std::move(failures)};
}

}  // namespace

std::vector<VerifyPart> verify_parts(const VerifyReport& report) {
  std::vector<VerifyPart> parts;
  const auto add = [&](std::optional<VerifyPart> part) {
    if (part) parts.push_back(std::move(*part));
  };
  add(part_of_replay(report));
  add(part_of_conform(report));
  add(part_of_deepspeed(report));
  add(part_of_training(report));
  add(part_of_engine(report));
  add(part_of_exact(report));
  add(part_of_upstream(report));
  add(part_of_mutation(report));
  return parts;
}

}  // namespace zeroproof
