#include "props/report/explore_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "props/exploration_status.h"
#include "props/report/table.h"
#include "props/report/text.h"
#include "props/report/timeline.h"

namespace zeroproof {
namespace {

std::string settings_line(const ExplorationOptions& options) {
  return fmt::format("{} {}, {}, N={}, {}", options.policy, policy_mode_name(options.mode),
                     order_model_name(options.order_model), options.params, options.scheduler);
}

std::string search_line(const ExplorationReport& report) {
  std::string line = "  ";
  if (report.orders_explored) {
    line += fmt::format("{} orders explored, ", report.orders_explored->text());
  }
  line += report.linear_extensions
              ? fmt::format("{} linear extensions; ", report.linear_extensions->text())
              : fmt::format("linear extensions not counted: {}; ", report.linear_extensions_reason);
  line += fmt::format("{} executions", report.executions);
  if (report.states) line += fmt::format(", {} states", *report.states);
  if (!report.policy_exception.empty())
    line += fmt::format("\n  the policy raised {}", report.policy_exception);
  return line + "\n";
}

std::size_t count_of(const std::vector<Verdict>& verdicts, Status status) {
  return static_cast<std::size_t>(
      std::count_if(verdicts.begin(), verdicts.end(),
                    [&](const Verdict& verdict) { return verdict.status == status; }));
}

std::string verdict_line(const std::vector<Verdict>& verdicts) {
  std::string line = fmt::format("  {} properties held", count_of(verdicts, Status::held));
  for (const Status status : {Status::falsified, Status::latent, Status::not_applicable}) {
    const std::size_t count = count_of(verdicts, status);
    if (count == 0) continue;
    const bool is_last = status == Status::not_applicable;
    line += fmt::format(", {} {}", count, is_last ? "not applicable" : status_name(status));
  }
  return line + "\n";
}

std::string headline(const Property& property, const Palette& palette) {
  return fmt::format("{} {} {}: {}\n", palette.bad("FALSIFIED"), property.number,
                     palette.title(property.id), property.statement);
}

std::string finding_text(const ExplorationFinding& finding, const PageStyle& style) {
  std::string text = "\n" + headline(*finding.property, style.palette);
  text += fmt::format("  {}\n", visible(finding.finding.text));
  text += fmt::format("  {} executions failed; {} events{}\n", finding.failing_executions,
                      finding.events.size(),
                      finding.is_minimal ? ", minimised: no further event can be dropped" : "");
  const TimelineMark mark{finding.bad_event, fmt::format("{}: {}", finding.property->id,
                                                         visible(finding.finding.text))};
  return text + timeline_text(finding.events, finding.names, {mark},
                              {.columns = style.columns, .palette = style.palette});
}

std::string cell_of(const ExplorationReport& report) {
  const ExplorationStatus status = status_of(report);
  if (status == ExplorationStatus::falsified) return falsified_numbers(report);
  return std::string(exploration_status_name(status));
}

std::string legend(const std::vector<ExplorationReport>& reports) {
  std::map<const Property*, bool> seen;  // one array: addresses are in catalogue order
  for (const ExplorationReport& report : reports) {
    for (const ExplorationFinding& finding : report.findings) seen[finding.property] = true;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [property, unused] : seen) {
    rows.push_back({std::string(property->number), std::string(property->id),
                    std::string(property->statement)});
  }
  return rows.empty() ? "" : "\n" + table_text(rows);
}

}  // namespace

std::string explore_text(const ExplorationReport& report, const PageStyle& style) {
  std::string text = fmt::format("{}: {}\n  {}\n", style.palette.title(report.options.scenario),
                                 visible(report.title), settings_line(report.options));
  text += search_line(report) + verdict_line(report.verdicts);
  if (!report.divergence.empty()) text += fmt::format("  {}\n", report.divergence);
  const ExplorationStatus status = status_of(report);
  if (status == ExplorationStatus::held) {
    text += style.palette.good("HELD") + "\n";
  } else if (status != ExplorationStatus::falsified) {
    text += style.palette.bad(exploration_status_name(status)) + "\n";
  }
  for (const ExplorationFinding& finding : report.findings) text += finding_text(finding, style);
  return text;
}

std::string explore_table(const std::vector<ExplorationReport>& reports, const PageStyle& style) {
  std::vector<std::string> policies;
  std::vector<std::string> scenarios;
  std::map<std::pair<std::string, std::string>, const ExplorationReport*> cells;
  const auto note = [](std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const ExplorationReport& report : reports) {
    note(policies, report.options.policy);
    note(scenarios, report.options.scenario);
    cells[{report.options.scenario, report.options.policy}] = &report;
  }
  std::vector<std::vector<std::string>> rows = {{"scenario", "orders"}};
  rows.front().insert(rows.front().end(), policies.begin(), policies.end());
  for (const std::string& scenario : scenarios) {
    auto& row = rows.emplace_back(std::vector<std::string>{scenario, "?"});
    for (const std::string& policy : policies) {
      const auto cell = cells.find({scenario, policy});
      row.push_back(cell == cells.end() ? "-" : cell_of(*cell->second));
      if (cell == cells.end()) continue;
      const auto& orders = cell->second->linear_extensions;
      if (orders) row[1] = orders->text();
    }
  }
  const ExplorationOptions& options = reports.front().options;
  const std::string title =
      fmt::format("falsified properties: {}, {}, N={}, {}", policy_mode_name(options.mode),
                  order_model_name(options.order_model), options.params, options.scheduler);
  return style.palette.title(title) + "\n" + table_text(rows) + legend(reports);
}

std::string schedule_text_page(const ScheduleReplay& replay, const PageStyle& style) {
  const auto& settings = replay.schedule.settings;
  std::string text = fmt::format("{}:", style.palette.title(replay.schedule.scenario));
  for (const auto& [key, value] : settings) text += fmt::format(" {}={}", key, visible(value));
  text += "\n" + verdict_line(replay.run.verdicts);
  std::vector<TimelineMark> marks;
  for (const Verdict& verdict : replay.run.verdicts) {
    if (verdict.status != Status::falsified) continue;
    const Finding& finding = verdict.findings.front();
    text += headline(*verdict.property, style.palette);
    const auto& events = replay.run.events;
    const auto bad = std::find_if(events.begin(), events.end(),
                                  [&](const HookEvent& event) { return event.lc == finding.lc; });
    const std::size_t last = events.empty() ? 0 : events.size() - 1;
    const auto at = static_cast<std::size_t>(bad - events.begin());
    marks.push_back(
        {std::min(at, last), fmt::format("{}: {}", verdict.property->id, visible(finding.text))});
  }
  text += timeline_text(replay.run.events, replay.run.names, marks,
                        {.columns = style.columns, .palette = style.palette});
  if (!replay.is_reproduced()) {
    text += style.palette.bad(
                fmt::format("NOT REPRODUCED: the schedule promises [{}], this run falsified [{}]",
                            fmt::join(*replay.expected, " "), fmt::join(replay.falsified, " "))) +
            "\n";
  } else if (replay.falsified.empty()) {
    text += style.palette.good("HELD") + "\n";
  } else if (replay.expected) {
    text += fmt::format("reproduced: {}\n", fmt::join(replay.falsified, " "));
  }
  return text;
}

}  // namespace zeroproof
