#include "props/report/replay_findings.h"

#include <fmt/format.h>

#include <map>

#include "props/exploration_status.h"
#include "sim/trace/reader.h"

namespace zeroproof {
namespace {

// Findings of one trace, in the order of its levels.
class TraceFindings {
 public:
  TraceFindings(const TraceReplay& trace, LocatedFindings& out) : trace_(trace), out_(out) {}

  void add_all() {
    if (trace_.fault)
      add_rule("trace.readable", "the trace can be read to its end", trace_.fault->text);
    if (trace_.properties) add_properties(*trace_.properties);
    if (trace_.queue && trace_.queue->first_mismatch) {
      add_rule("queue.order", "nodes run in the order that the recorded graph gives",
               trace_.queue->first_mismatch->text)
          .call = trace_.queue->first_mismatch->call;
    }
    if (trace_.state && trace_.state->first_mismatch) {
      add_rule("state.manager", "each manager call leaves the state that the policy leaves",
               trace_.state->first_mismatch->text)
          .lc = trace_.state->first_mismatch->lc;
    }
    for (const StructureFinding& finding : trace_.structure) {
      LocatedFinding& added = add_rule("format." + finding.rule,
                                       "docs/reference/trace_format.md section 10", finding.text);
      added.line = finding.line_number;
      added.lc = finding.lc;
    }
  }

 private:
  LocatedFinding& add(LocatedFinding finding) {
    finding.file = trace_.path;
    finding.subject = trace_.program;
    return out_.emplace_back(std::move(finding));
  }

  LocatedFinding& add_rule(std::string rule, std::string statement, const std::string& text) {
    return add({.rule = std::move(rule), .statement = std::move(statement), .text = text});
  }

  void add_properties(const PropertiesReport& properties) {
    for (const Finding& finding : properties.falsified) add(located_finding(finding));
    for (const Finding& finding : properties.latent) {
      add(located_finding(finding)).level = FindingLevel::warning;
    }
  }

  const TraceReplay& trace_;
  LocatedFindings& out_;
};

// Where a person would look: the scenario of a built-in id is a file of the tree.
std::string file_of(const std::string& scenario) {
  return scenario.ends_with(".json") ? scenario : fmt::format("props/scenarios/{}.json", scenario);
}

std::string subject_of(const ExplorationOptions& options) {
  return fmt::format("{} {} {} {} N={}", options.scenario, options.policy,
                     policy_mode_name(options.mode), order_model_name(options.order_model),
                     options.params);
}

using LinesByClock = std::map<std::pair<std::int32_t, std::uint64_t>, std::uint64_t>;

// Fills in the lines of the wanted clocks.
void read_lines(const std::string& path, LinesByClock& wanted) {
  NameTable names;
  auto reader = TraceReader::open(path, names);
  while (reader) {
    const auto record = reader->next();
    if (!record || *record == nullptr) return;
    const HookEvent* event = (*record)->event();
    if (event == nullptr) continue;
    const auto found = wanted.find({event->rank, event->lc});
    if (found != wanted.end()) found->second = (*record)->line_number;
  }
}

}  // namespace

LocatedFinding located_finding(const Finding& finding) {
  return {.rule = std::string(finding.property->id),
          .number = std::string(finding.property->number),
          .statement = std::string(finding.property->statement),
          .source = std::string(finding.property->source),
          .level = finding.is_latent ? FindingLevel::warning : FindingLevel::error,
          .text = finding.text,
          .lc = finding.lc,
          .rank = finding.rank};
}

LocatedFindings located_findings(const ReplayReport& report) {
  LocatedFindings findings;
  for (const TraceReplay& trace : report.traces) TraceFindings(trace, findings).add_all();
  return findings;
}

LocatedFindings located_findings(const std::vector<ScheduleReplay>& schedules) {
  LocatedFindings findings;
  for (const ScheduleReplay& replay : schedules) {
    for (const Verdict& verdict : replay.run.verdicts) {
      if (verdict.status != Status::falsified) continue;
      for (const Finding& finding : verdict.findings) {
        LocatedFinding& added = findings.emplace_back(located_finding(finding));
        added.subject = replay.schedule.scenario;
        added.file = file_of(replay.schedule.scenario);
        added.reproduce = "replay " + schedule_text(replay.schedule);
      }
    }
  }
  return findings;
}

LocatedFindings located_findings(const std::vector<ExplorationReport>& reports) {
  LocatedFindings findings;
  for (const ExplorationReport& report : reports) {
    for (const ExplorationFinding& finding : report.findings) {
      LocatedFinding& added = findings.emplace_back(located_finding(finding.finding));
      added.subject = subject_of(report.options);
      added.file = file_of(report.options.scenario);
      added.reproduce = "replay " + schedule_text(finding.schedule);
    }
    const ExplorationStatus status = status_of(report);
    if (status == ExplorationStatus::held || status == ExplorationStatus::falsified) continue;
    findings.push_back(
        {.rule = "explore.search",
         .statement = "the search reaches its end, and the same schedule the same run",
         .text = fmt::format("{} {}", exploration_status_name(status), report.divergence),
         .subject = subject_of(report.options),
         .file = file_of(report.options.scenario)});
  }
  return findings;
}

void find_lines(LocatedFindings& findings) {
  std::map<std::string, LinesByClock> wanted;  // by file
  for (const LocatedFinding& finding : findings) {
    if (finding.line == 0 && finding.lc > 0) wanted[finding.file][{finding.rank, finding.lc}] = 0;
  }
  for (auto& [path, lines] : wanted) read_lines(path, lines);
  for (LocatedFinding& finding : findings) {
    if (finding.line == 0 && finding.lc > 0)
      finding.line = wanted[finding.file][{finding.rank, finding.lc}];
  }
}

}  // namespace zeroproof
