#include "props/report/program_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "props/program/program_json.h"
#include "props/run_properties.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson json_of(const ProgramFinding& finding) {
  return {{"kind", finding.kind},
          {"text", finding.text},
          {"case", finding.case_number},
          {"choices", finding.choices},
          {"choices_before", finding.choices_before},
          {"shrink_runs", finding.shrink_runs},
          {"token", finding.token},
          {"schedule", finding.entry.schedule},
          {"program", OrderedJson::parse(program::program_json(finding.entry.program))}};
}

OrderedJson json_of(const ProgramExploration& one) {
  OrderedJson findings = OrderedJson::array();
  for (const ProgramFinding& finding : one.findings) findings.push_back(json_of(finding));
  return {{"subject", one.subject},       {"judge", one.judge},     {"cases", one.cases},
          {"executions", one.executions}, {"skipped", one.skipped}, {"tokens", one.tokens},
          {"values", one.values},         {"findings", findings}};
}

std::string text_of(const ProgramFinding& finding) {
  std::string text =
      fmt::format("FALSIFIED {} in case {}: {}\n", finding.kind, finding.case_number, finding.text);
  if (finding.choices_before != 0)
    text += fmt::format("  {} of {} choices, {} runs to minimise\n", finding.choices,
                        finding.choices_before, finding.shrink_runs);
  return text + finding.program;
}

}  // namespace

std::string program_exploration_text(const ProgramExploration& exploration) {
  std::string text =
      fmt::format("explore {}, judge {}\n  {} cases, {} executions, {} findings, {:.1f} s\n",
                  exploration.subject, exploration.judge, exploration.cases, exploration.executions,
                  exploration.findings.size(), exploration.seconds);
  if (exploration.judge != "values")
    text += fmt::format("  {} order tokens and {} numbers compared\n", exploration.tokens,
                        exploration.values);
  if (exploration.skipped != 0)
    text +=
        fmt::format("  {} cases skipped: they have more ranks than GPUs\n", exploration.skipped);
  for (const ProgramFinding& finding : exploration.findings) text += "\n" + text_of(finding);
  return text;
}

std::string program_exploration_json(const std::vector<ProgramExploration>& explorations,
                                     std::uint64_t seed) {
  OrderedJson all = OrderedJson::array();
  for (const ProgramExploration& one : explorations) all.push_back(json_of(one));
  return OrderedJson{
      {"schema", "zeroproof.explore_programs/1"}, {"seed", seed}, {"explorations", all}}
      .dump(1);
}

std::vector<JUnitCase> program_exploration_cases(
    const std::vector<ProgramExploration>& explorations) {
  std::vector<JUnitCase> cases;
  for (const ProgramExploration& one : explorations) {
    JUnitCase junit{.suite = "explore programs", .name = one.subject + " " + one.judge};
    if (!one.findings.empty()) {
      junit.outcome = JUnitOutcome::failed;
      for (const ProgramFinding& finding : one.findings) junit.text += text_of(finding);
    }
    cases.push_back(std::move(junit));
  }
  return cases;
}

LocatedFindings located_findings(const std::vector<ProgramExploration>& explorations) {
  LocatedFindings all;
  for (const ProgramExploration& one : explorations)
    for (const ProgramFinding& finding : one.findings) {
      LocatedFinding located{.rule = "program." + finding.kind, .number = finding.kind};
      if (const Property* const property = find_any_property(finding.kind)) {
        located.rule = property->id;
        located.statement = property->statement;
        located.source = property->source;
      }
      located.text = finding.text;
      located.subject = fmt::format("{} case {}", one.subject, finding.case_number);
      if (!finding.token.empty()) located.reproduce = "replay " + finding.token;
      all.push_back(std::move(located));
    }
  return all;
}

std::string program_replay_text(const ProgramReplayReport& replay) {
  std::string text = replay.program;
  for (const hunt::Falsified& one : replay.result.falsified)
    text += fmt::format("FALSIFIED {} rank {}: {}\n", one.property->number, one.rank, one.text);
  return replay.result.falsified.empty() ? text + "every property held\n" : text;
}

std::string program_replay_json(const ProgramReplayReport& replay) {
  OrderedJson falsified = OrderedJson::array();
  for (const hunt::Falsified& one : replay.result.falsified)
    falsified.push_back(
        {{"property", std::string(one.property->number)}, {"rank", one.rank}, {"text", one.text}});
  return OrderedJson{{"schema", "zeroproof.replay_program/1"},
                     {"source", replay.source},
                     {"executions", replay.result.executions},
                     {"falsified", falsified},
                     {"program", replay.program}}
      .dump(1);
}

}  // namespace zeroproof
