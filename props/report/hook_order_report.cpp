#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "props/hook_order.h"
#include "props/report/table.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

template <class Value>
OrderedJson or_null(const std::optional<Value>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

double rate(std::uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
}

// A sample speaks for the orders that it met.
std::string_view verdict(const HookOrderReport& report) {
  if (!report.divergence.empty()) return "diverged";
  if (!report.findings.empty()) return "falsified";
  const bool is_cut_short = report.scheduler == "exhaustive" && !report.has_exhausted;
  return is_cut_short ? "inconclusive" : "held";
}

OrderedJson finding_json(const HookOrderFinding& finding) {
  return {{"property", property_name(finding.property)},
          {"statement", property_statement(finding.property)},
          {"explanation", finding.explanation},
          {"moves", finding.moves.size()},
          {"counterexample", finding.moves}};
}

std::string finding_text(const HookOrderFinding& finding) {
  std::string text = fmt::format("  {} falsified: {}\n  {}\n", property_name(finding.property),
                                 property_statement(finding.property), finding.explanation);
  std::size_t column = 0;
  for (const std::string& move : finding.moves) {
    if (column > 90) text += '\n';
    if (column > 90 || column == 0) column = 1;
    text += fmt::format("{}{}", column == 1 ? "  " : " ", move);
    column += move.size() + 1;
  }
  text += '\n';
  return text;
}

}  // namespace

std::string hook_order_json(const HookOrderReport& report, std::uint64_t seed, double seconds) {
  OrderedJson document = {{"schema", "zeroproof.hook_order/1"},
                          {"scenario", "hook_order"},
                          {"settings", report.settings},
                          {"scheduler", report.scheduler},
                          {"is_reduced", report.is_reduced},
                          {"has_exhausted", report.has_exhausted},
                          {"seed", seed},
                          {"states", or_null(report.states)},
                          {"transitions", or_null(report.transitions)},
                          {"schedules", report.executions},
                          {"seconds", seconds},
                          {"events", report.events},
                          {"events_per_second", rate(report.events, seconds)},
                          {"bytes_per_state", or_null(report.bytes_per_state)},
                          {"verdict", verdict(report)}};
  if (!report.divergence.empty()) document["divergence"] = report.divergence;
  document["findings"] = OrderedJson::array();
  for (const HookOrderFinding& finding : report.findings)
    document["findings"].push_back(finding_json(finding));
  return document.dump(1);
}

std::string hook_order_text(const HookOrderReport& report, double seconds) {
  std::string text = fmt::format("hook_order {}: {}\n", report.settings, verdict(report));
  if (!report.planted.empty()) text += fmt::format("  defect: {}\n", report.planted);
  if (!report.divergence.empty()) text += fmt::format("  {}\n", report.divergence);
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"scheduler", report.scheduler + (report.is_reduced ? ", reduced" : "")});
  if (report.states) rows.push_back({"states", std::to_string(*report.states)});
  if (report.transitions) rows.push_back({"transitions", std::to_string(*report.transitions)});
  rows.push_back({"executions", std::to_string(report.executions)});
  rows.push_back({"seconds", fmt::format("{:.4f}", seconds)});
  rows.push_back({"events", fmt::format("{}, {:.2f} M a second", report.events,
                                        rate(report.events, seconds) * 1e-6)});
  text += table_text(rows);
  for (const HookOrderFinding& finding : report.findings) text += finding_text(finding);
  return text;
}

}  // namespace zeroproof
