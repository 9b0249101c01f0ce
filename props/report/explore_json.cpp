#include <nlohmann/json.hpp>

#include "props/exploration_status.h"
#include "props/report/event_words.h"
#include "props/report/json.h"
#include "props/report/json_values.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Counts of orders pass 64 bits: decimal strings.
OrderedJson count_json(const std::optional<OrderCount>& count) {
  return count ? OrderedJson(count->text()) : OrderedJson(nullptr);
}

OrderedJson timeline_json(const ExplorationFinding& finding) {
  OrderedJson events = OrderedJson::array();
  for (std::size_t i = 0; i < finding.events.size(); ++i) {
    const EventWords words = event_words(finding.events[i], finding.names);
    if (words.is_detail && i != finding.bad_event) continue;
    OrderedJson event = {{"lc", finding.events[i].lc}, {"text", words.text}};
    if (i == finding.bad_event) event["is_bad"] = true;
    events.push_back(std::move(event));
  }
  return events;
}

OrderedJson exploration_finding_json(const ExplorationFinding& finding) {
  OrderedJson entry = finding_json<OrderedJson>(finding.finding);
  entry["failing_executions"] = finding.failing_executions;
  entry["schedule"] = schedule_text(finding.schedule);
  entry["minimized"] = {{"is_minimal", finding.is_minimal},
                        {"events", finding.events.size()},
                        {"scenario", OrderedJson::parse(scenario_text(finding.minimized))},
                        {"choices", finding.minimized_schedule.choices},
                        {"timeline", timeline_json(finding)}};
  return entry;
}

OrderedJson run_json(const ExplorationReport& report) {
  const ExplorationOptions& options = report.options;
  OrderedJson properties = verdicts_json<OrderedJson>(report.verdicts);
  properties["falsified"] = OrderedJson::array();
  for (const ExplorationFinding& finding : report.findings) {
    properties["falsified"].push_back(exploration_finding_json(finding));
  }
  OrderedJson run = {
      {"scenario", options.scenario},
      {"title", report.title},
      {"policy", options.policy},
      {"mode", policy_mode_name(options.mode)},
      {"order_model", order_model_name(options.order_model)},
      {"latitude", order_model_name(options.order_model)},  // its name until 0.2
      {"params", options.params},
      {"scheduler", options.scheduler},
      {"status", exploration_status_name(status_of(report))},
      {"executions", report.executions},
      {"states", report.states ? OrderedJson(*report.states) : OrderedJson(nullptr)},
      {"transitions", report.transitions ? OrderedJson(*report.transitions) : OrderedJson(nullptr)},
      {"orders_explored", count_json(report.orders_explored)},
      {"linear_extensions", count_json(report.linear_extensions)},
      {"properties", properties}};
  if (!report.policy_exception.empty()) run["policy_exception"] = report.policy_exception;
  return run;
}

}  // namespace

std::string explore_json(const std::vector<ExplorationReport>& reports, std::uint64_t seed) {
  OrderedJson runs = OrderedJson::array();
  std::size_t held = 0;
  std::size_t falsified = 0;
  for (const ExplorationReport& report : reports) {
    const ExplorationStatus status = status_of(report);
    if (status == ExplorationStatus::held) ++held;
    if (status == ExplorationStatus::falsified) ++falsified;
    runs.push_back(run_json(report));
  }
  return document_text<OrderedJson>({{"schema", "zeroproof.explore/1"},
                                     {"seed", seed},
                                     {"summary",
                                      {{"runs", reports.size()},
                                       {"held", held},
                                       {"falsified", falsified},
                                       {"other", reports.size() - held - falsified}}},
                                     {"runs", runs}});
}

}  // namespace zeroproof
