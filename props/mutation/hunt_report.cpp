#include "props/mutation/hunt_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "props/report/table.h"
#include "props/run_properties.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;
using mutation::Found;
using mutation::HuntReport;

struct Totals {
  std::size_t bugs = 0, modelled = 0, found = 0, tier1_modelled = 0, tier1_found = 0;
  std::size_t further = 0, further_found = 0;  // of no catalogue
};

// Of what was found: at most as large as the catalogue's smallest configuration, or larger.
struct Sizes {
  std::size_t within = 0, explained = 0, unexplained = 0;
};

bool is_within(const Found& one) {
  return mutation::is_within(one.counterexample, one.fault->row());
}

// The catalogue says how large the smallest case is.
bool is_measured(const Found& one) {
  return one.is_found && one.fault->is_of_catalogue();
}

Sizes sizes_of(const HuntReport& report) {
  Sizes sizes;
  for (const Found& one : report.found) {
    if (!is_measured(one)) continue;
    const bool is_explained = !one.fault->larger.empty();
    (is_within(one) ? sizes.within : is_explained ? sizes.explained : sizes.unexplained) += 1;
  }
  return sizes;
}

std::string sizes_text(const HuntReport& report) {
  const Sizes sizes = sizes_of(report);
  std::string text = fmt::format(
      "minimised: {} within the catalogue's smallest configuration, {} larger for a stated reason, "
      "{} larger\n",
      sizes.within, sizes.explained, sizes.unexplained);
  for (const Found& one : report.found)
    if (is_measured(one) && !is_within(one))
      text += fmt::format("  {}: {} ranks and {} parameters, catalogue {}: {}\n", one.fault->id,
                          one.counterexample.spec.world_size(),
                          one.counterexample.spec.parameters(), one.fault->row().configuration,
                          one.fault->larger.empty() ? "no reason is known" : one.fault->larger);
  return text;
}

// Null: the catalogue does not say.
OrderedJson smallest_of(const mutation::CatalogueRow& row) {
  const auto number = [](int value) {
    return value > 0 ? OrderedJson(value) : OrderedJson(nullptr);
  };
  return {{"ranks", number(row.ranks)}, {"parameters", number(row.parameters)}};
}

// A bug of the catalogue counts once, and as found where both of a pair of faults are.
Totals totals_of(const HuntReport& report) {
  struct Bug {
    bool is_modelled = false, is_found = true, is_first_tier = false;
  };
  std::map<std::string_view, Bug> bugs;
  Totals totals;
  for (const Found& one : report.found) {
    if (one.fault->is_further()) {
      totals.further += 1;
      totals.further_found += one.is_found ? 1 : 0;
      continue;
    }
    Bug& bug = bugs[one.fault->is_hazard() ? one.fault->id : one.fault->row().id];
    bug.is_modelled = bug.is_modelled || one.fault->is_modelled();
    bug.is_found = bug.is_found && one.is_found;
    bug.is_first_tier = one.fault->row().tier == 1;
  }
  totals.bugs = bugs.size();
  for (const auto& [id, bug] : bugs) {
    if (!bug.is_modelled) continue;
    totals.modelled += 1;
    totals.tier1_modelled += bug.is_first_tier ? 1 : 0;
    totals.found += bug.is_found ? 1 : 0;
    totals.tier1_found += bug.is_found && bug.is_first_tier ? 1 : 0;
  }
  return totals;
}

std::vector<std::string> row_of(const Found& one) {
  const std::string tier = one.fault->is_further() ? "-" : std::to_string(one.fault->row().tier);
  const std::string id(one.fault->id);
  if (!one.fault->is_modelled()) return {id, tier, "-", std::string(one.fault->reason)};
  if (!one.is_found)
    return {id,
            tier,
            "MISSED",
            "-",
            std::to_string(one.executions),
            fmt::format("{:.2f}", one.seconds),
            "-",
            "-",
            "-",
            std::string(one.fault->sentence)};
  return {id,
          tier,
          "found",
          fmt::format("{} {}", one.property->number, one.property->id),
          std::to_string(one.executions),
          fmt::format("{:.2f}", one.seconds),
          std::to_string(one.events),
          std::to_string(one.counterexample.spec.parameters()),
          std::to_string(one.counterexample.spec.world_size()),
          std::string(one.fault->sentence)};
}

double median_seconds(const HuntReport& report) {
  std::vector<double> seconds;
  for (const Found& one : report.found)
    if (one.is_found && one.fault->row().tier == 1) seconds.push_back(one.seconds);
  if (seconds.empty()) return 0.0;
  std::ranges::nth_element(seconds, seconds.begin() + std::ssize(seconds) / 2);
  return seconds[seconds.size() / 2];
}

OrderedJson json_of(const Found& one) {
  OrderedJson json = {{"id", one.fault->id},
                      {"tier", one.fault->row().tier},
                      {"slug", one.fault->row().slug},
                      {"sentence", one.fault->sentence},
                      {"modelled", one.fault->is_modelled()},
                      {"found", one.is_found}};
  if (!one.fault->is_modelled()) {
    json["reason"] = one.fault->reason;
    return json;
  }
  json["property"] = one.property ? OrderedJson(one.property->id) : OrderedJson(nullptr);
  json["executions"] = one.executions;
  json["seconds"] = one.seconds;
  if (one.property) {
    json["ranks"] = one.counterexample.spec.world_size();
    json["parameters"] = one.counterexample.spec.parameters();
    json["events"] = one.events;
    json["smallest"] = smallest_of(one.fault->row());
    json["is_within_smallest"] = is_within(one);
    if (!is_within(one) && !one.fault->larger.empty()) json["larger_because"] = one.fault->larger;
    json["replay_ok"] = one.replay_ok;
    json["unmutated_replay_ok"] = one.unmutated_replay_ok;
    json["falsified"] = one.falsified;
    json["text"] = one.text;
    json["schedule"] = mutation::token_of(one.counterexample, one.fault->id);
  }
  return json;
}

// By number of property: the faults that falsify it.
std::map<std::string, std::vector<std::string>> caught_by(const HuntReport& report) {
  std::map<std::string, std::vector<std::string>> caught;
  for (const Found& one : report.found)
    for (const std::string& number : one.falsified)
      if (one.is_found) caught[number].emplace_back(one.fault->id);
  return caught;
}

void append_side(std::string& text, const char* title, const mutation::CaseResult& result) {
  text += fmt::format("{}: {} events\n", title, result.events);
  if (result.falsified.empty()) text += "  every property held\n";
  for (const mutation::Falsified& one : result.falsified)
    text +=
        fmt::format("  FALSIFIED {} {}: {}\n", one.property->number, one.property->id, one.text);
}

}  // namespace

std::string hunt_text(const HuntReport& report, const Palette& palette) {
  std::vector<std::vector<std::string>> rows = {{"id", "tier", "", "property", "executions",
                                                 "seconds", "events", "parameters", "ranks",
                                                 "fault"}};
  for (const Found& one : report.found) rows.push_back(row_of(one));
  std::string text = table_text(rows);
  const Totals totals = totals_of(report);
  text += fmt::format("canary {}; unmutated engine: {} cases, {} executions in {:.1f} s, {}\n",
                      report.canary.is_found ? "found" : palette.bad("MISSED"),
                      report.unmutated.cases, report.unmutated.executions, report.unmutated.seconds,
                      report.unmutated.is_clean() ? "no finding" : palette.bad("FINDINGS"));
  for (const std::string& finding : report.unmutated.findings) text += "  " + finding + "\n";
  if (totals.bugs > 0)
    text += fmt::format(
        "{} of {} faults modelled, {} found; tier 1: {} modelled, {} found, median {:.2f} s\n",
        totals.modelled, totals.bugs, totals.found, totals.tier1_modelled, totals.tier1_found,
        median_seconds(report));
  if (totals.bugs > 0 && report.options.minimizes) text += sizes_text(report);
  if (totals.further > 0)
    text += fmt::format("{} further faults, of no catalogue: {} found\n", totals.further,
                        totals.further_found);
  return text;
}

std::string hunt_json(const HuntReport& report) {
  const Totals totals = totals_of(report);
  const Sizes sizes = sizes_of(report);
  OrderedJson faults = OrderedJson::array();
  for (const Found& one : report.found) faults.push_back(json_of(one));
  return OrderedJson{{"schema", "zeroproof.mutation/1"},
                     {"seed", report.options.seed},
                     {"summary",
                      {{"catalogue", mutation::bug_catalogue().size()},
                       {"modelled", totals.modelled},
                       {"found", totals.found},
                       {"tier1_modelled", totals.tier1_modelled},
                       {"tier1_found", totals.tier1_found},
                       {"further", totals.further},
                       {"further_found", totals.further_found},
                       {"within_smallest", sizes.within},
                       {"larger_with_reason", sizes.explained},
                       {"larger_without_reason", sizes.unexplained},
                       {"canary_found", report.canary.is_found},
                       {"unmutated_clean", report.unmutated.is_clean()},
                       {"unmutated_executions", report.unmutated.executions},
                       {"unmutated_seconds", report.unmutated.seconds}}},
                     {"unmutated_findings", report.unmutated.findings},
                     {"faults", faults}}
      .dump();
}

std::vector<JUnitCase> hunt_cases(const HuntReport& report) {
  std::vector<JUnitCase> cases;
  for (const Found& one : report.found) {
    JUnitCase& row = cases.emplace_back();
    row.suite = "mutation";
    row.name = one.fault->id;
    row.text = std::string(one.fault->is_modelled() ? one.fault->sentence : one.fault->reason);
    row.outcome = one.is_found               ? JUnitOutcome::passed
                  : one.fault->is_modelled() ? JUnitOutcome::failed
                                             : JUnitOutcome::skipped;
  }
  cases.push_back({"mutation", "canary",
                   report.canary.is_found ? JUnitOutcome::passed : JUnitOutcome::failed,
                   "the canary was not found"});
  cases.push_back({"mutation", "unmutated",
                   report.unmutated.is_clean() ? JUnitOutcome::passed : JUnitOutcome::failed,
                   fmt::format("{}", fmt::join(report.unmutated.findings, "\n"))});
  return cases;
}

std::string hunt_matrix_text(const HuntReport& report) {
  std::vector<std::vector<std::string>> rows = {{"property", "faults", "escape without it"}};
  for (const auto& [number, ids] : caught_by(report)) {
    std::vector<std::string> alone;
    for (const Found& one : report.found)
      if (one.is_found && one.falsified.size() == 1 && one.falsified.contains(number))
        alone.emplace_back(one.fault->id);
    const Property* const property = find_any_property(number);
    rows.push_back({fmt::format("{} {}", number, property ? property->id : "?"),
                    std::to_string(ids.size()),
                    alone.empty() ? "none" : fmt::format("{}", fmt::join(alone, " "))});
  }
  return table_text(rows);
}

std::string hunt_replay_text(const mutation::ReadToken& token, const mutation::CaseResult& mutated,
                             const mutation::CaseResult& unmutated) {
  std::string text = fmt::format("{}: {}\n", token.id, train::case_json(token.counterexample.spec));
  append_side(text, "mutated", mutated);
  append_side(text, "unmutated", unmutated);
  return text;
}

std::string hunt_replay_json(const mutation::ReadToken& token, const mutation::CaseResult& mutated,
                             const mutation::CaseResult& unmutated) {
  const auto side = [](const mutation::CaseResult& result) {
    OrderedJson falsified = OrderedJson::array();
    for (const mutation::Falsified& one : result.falsified)
      falsified.push_back({{"id", one.property->id},
                           {"number", one.property->number},
                           {"rank", one.rank < 0 ? OrderedJson(nullptr) : OrderedJson(one.rank)},
                           {"text", one.text}});
    return OrderedJson{{"events", result.events}, {"falsified", falsified}};
  };
  return OrderedJson{{"schema", "zeroproof.mutation_replay/1"},
                     {"id", token.id},
                     {"case", OrderedJson::parse(train::case_json(token.counterexample.spec))},
                     {"schedule", mutation::token_of(token.counterexample, token.id)},
                     {"mutated", side(mutated)},
                     {"unmutated", side(unmutated)}}
      .dump();
}

}  // namespace zeroproof
