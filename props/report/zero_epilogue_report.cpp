#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "props/report/table.h"
#include "props/zero_epilogue.h"

namespace zeroproof {
namespace {

using Json = nlohmann::ordered_json;
using zero_epilogue::Property;
using zero_epilogue::property_name;

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json pct_json(const PctCertificate& pct) {
  return {{"processes", pct.tasks},
          {"events", pct.steps},
          {"depth", pct.depth},
          {"schedules", pct.runs},
          {"chance_a_schedule", pct.hit_chance()},
          {"chance_of_a_miss", pct.miss_chance()}};
}

std::string finding_text(const ZeroEpilogueReport& report) {
  std::string text = fmt::format("  {} falsified: {}\n", property_name(*report.property),
                                 property_statement(*report.property));
  text += fmt::format("  {} events, {}\n", report.events,
                      report.is_shortest ? "no shorter run exists" : "as it was met");
  for (std::size_t i = 0; i < report.steps.size(); ++i) {
    text += fmt::format("  {:>4}  {}\n", i + 1, report.steps[i]);
  }
  return text;
}

std::string pct_text(const PctCertificate& pct) {
  return fmt::format(
      "  pct: n={} processes, k={} events, d={}: a violation of depth {} is met in a schedule with "
      "a chance of at least {:.3g},\n  and was missed by all {} with at most {:.3g}\n",
      pct.tasks, pct.steps, pct.depth, pct.depth, pct.hit_chance(), pct.runs, pct.miss_chance());
}

}  // namespace

std::string zero_epilogue_json(const ZeroEpilogueReport& report, std::uint64_t seed,
                               double seconds) {
  Json document = {{"schema", "zeroproof.zero_epilogue/1"},
                   {"scenario", "zero_epilogue"},
                   {"settings", report.settings},
                   {"scheduler", report.scheduler},
                   {"is_reduced", report.is_reduced},
                   {"seed", seed},
                   {"states", or_null(report.states)},
                   {"transitions", or_null(report.transitions)},
                   {"schedules", or_null(report.schedules)},
                   {"seconds", seconds},
                   {"bytes_per_state", or_null(report.bytes_per_state)},
                   {"verdict", report.property ? "falsified" : "held"}};
  if (report.property) {
    document["property"] = property_name(*report.property);
    document["events"] = report.events;
    document["is_shortest"] = report.is_shortest;
    document["counterexample"] = report.steps;
  }
  if (report.pct) document["pct"] = pct_json(*report.pct);
  for (std::size_t i = 0; i < report.probabilities.size(); ++i) {
    const auto property = static_cast<Property>(i + 1);
    document["probabilities"][std::string(property_name(property))] = report.probabilities[i];
  }
  return document.dump(1);
}

std::string zero_epilogue_text(const ZeroEpilogueReport& report, double seconds) {
  std::string text = fmt::format("zero_epilogue {}: {}\n", report.settings,
                                 report.property ? "falsified" : "held");
  if (!report.defect.empty()) text += fmt::format("  planted: {}\n", report.defect);
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"scheduler", report.scheduler + (report.is_reduced ? ", reduced" : "")});
  if (report.states) rows.push_back({"states", std::to_string(*report.states)});
  if (report.transitions) rows.push_back({"transitions", std::to_string(*report.transitions)});
  if (report.schedules) rows.push_back({"schedules", *report.schedules});
  if (report.bytes_per_state) {
    rows.push_back({"bytes a state", fmt::format("{:.2f}", *report.bytes_per_state)});
  }
  rows.push_back({"seconds", fmt::format("{:.4f}", seconds)});
  for (std::size_t i = 0; i < report.probabilities.size(); ++i) {
    if (report.probabilities[i] == 0) continue;
    rows.push_back({fmt::format("chance of {}", property_name(static_cast<Property>(i + 1))),
                    fmt::format("{:.9g} a random schedule", report.probabilities[i])});
  }
  text += table_text(rows);
  if (report.pct) text += pct_text(*report.pct);
  if (report.property) text += finding_text(report);
  return text;
}

}  // namespace zeroproof
