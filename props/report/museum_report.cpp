#include "props/report/museum_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "props/report/table.h"
#include "props/run_properties.h"

namespace zeroproof {
namespace {

using Json = nlohmann::ordered_json;
using museum::Found;
using museum::MuseumReport;

struct Totals {
  std::size_t bugs = 0, modelled = 0, found = 0, tier1_modelled = 0, tier1_found = 0;
  std::size_t further = 0, further_found = 0;  // of no catalogue
};

// Of what was found: at most as large as the catalogue's smallest configuration, or larger.
struct Sizes {
  std::size_t within = 0, explained = 0, unexplained = 0;
};

bool is_within(const Found& one) {
  return museum::is_within(one.specimen, one.entry->row());
}

// The catalogue says how large the smallest case is.
bool is_measured(const Found& one) {
  return one.is_found && one.entry->is_of_catalogue();
}

Sizes sizes_of(const MuseumReport& report) {
  Sizes sizes;
  for (const Found& one : report.found) {
    if (!is_measured(one)) continue;
    const bool is_explained = !one.entry->larger.empty();
    (is_within(one) ? sizes.within : is_explained ? sizes.explained : sizes.unexplained) += 1;
  }
  return sizes;
}

std::string sizes_text(const MuseumReport& report) {
  const Sizes sizes = sizes_of(report);
  std::string text = fmt::format(
      "minimised: {} within the catalogue's smallest configuration, {} larger for a stated reason, "
      "{} larger\n",
      sizes.within, sizes.explained, sizes.unexplained);
  for (const Found& one : report.found)
    if (is_measured(one) && !is_within(one))
      text += fmt::format("  {}: {} ranks and {} parameters, catalogue {}: {}\n", one.entry->id,
                          one.specimen.spec.world_size(), one.specimen.spec.parameters(),
                          one.entry->row().configuration,
                          one.entry->larger.empty() ? "no reason is known" : one.entry->larger);
  return text;
}

// Null: the catalogue does not say.
Json smallest_of(const museum::CatalogueRow& row) {
  const auto number = [](int value) { return value > 0 ? Json(value) : Json(nullptr); };
  return {{"ranks", number(row.ranks)}, {"parameters", number(row.parameters)}};
}

// A bug of the catalogue counts once, and as found where both of a pair of faults are.
Totals totals_of(const MuseumReport& report) {
  struct Bug {
    bool is_modelled = false, is_found = true, is_first_tier = false;
  };
  std::map<std::string_view, Bug> bugs;
  Totals totals;
  for (const Found& one : report.found) {
    if (one.entry->is_further()) {
      totals.further += 1;
      totals.further_found += one.is_found ? 1 : 0;
      continue;
    }
    Bug& bug = bugs[one.entry->is_hazard() ? one.entry->id : one.entry->row().id];
    bug.is_modelled = bug.is_modelled || one.entry->is_modelled();
    bug.is_found = bug.is_found && one.is_found;
    bug.is_first_tier = one.entry->row().tier == 1;
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
  const std::string tier = one.entry->is_further() ? "-" : std::to_string(one.entry->row().tier);
  const std::string id(one.entry->id);
  if (!one.entry->is_modelled()) return {id, tier, "-", std::string(one.entry->reason)};
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
            std::string(one.entry->fault)};
  return {id,
          tier,
          "found",
          fmt::format("{} {}", one.property->number, one.property->id),
          std::to_string(one.executions),
          fmt::format("{:.2f}", one.seconds),
          std::to_string(one.events),
          std::to_string(one.specimen.spec.parameters()),
          std::to_string(one.specimen.spec.world_size()),
          std::string(one.entry->fault)};
}

double median_seconds(const MuseumReport& report) {
  std::vector<double> seconds;
  for (const Found& one : report.found)
    if (one.is_found && one.entry->row().tier == 1) seconds.push_back(one.seconds);
  if (seconds.empty()) return 0.0;
  std::ranges::nth_element(seconds, seconds.begin() + std::ssize(seconds) / 2);
  return seconds[seconds.size() / 2];
}

Json json_of(const Found& one) {
  Json json = {{"id", one.entry->id},
               {"tier", one.entry->row().tier},
               {"slug", one.entry->row().slug},
               {"modelled", one.entry->is_modelled()},
               {"found", one.is_found}};
  if (!one.entry->is_modelled()) {
    json["reason"] = one.entry->reason;
    return json;
  }
  json["property"] = one.property ? Json(one.property->id) : Json(nullptr);
  json["executions"] = one.executions;
  json["seconds"] = one.seconds;
  if (one.property) {
    json["ranks"] = one.specimen.spec.world_size();
    json["parameters"] = one.specimen.spec.parameters();
    json["events"] = one.events;
    json["smallest"] = smallest_of(one.entry->row());
    json["is_within_smallest"] = is_within(one);
    if (!is_within(one) && !one.entry->larger.empty()) json["larger_because"] = one.entry->larger;
    json["replay_ok"] = one.replay_ok;
    json["healthy_replay_ok"] = one.healthy_replay_ok;
    json["falsified"] = one.falsified;
    json["text"] = one.text;
    json["schedule"] = museum::token_of(one.specimen, one.entry->id);
  }
  return json;
}

// By number of property: the entries that falsify it.
std::map<std::string, std::vector<std::string>> caught_by(const MuseumReport& report) {
  std::map<std::string, std::vector<std::string>> caught;
  for (const Found& one : report.found)
    for (const std::string& number : one.falsified)
      if (one.is_found) caught[number].emplace_back(one.entry->id);
  return caught;
}

void append_side(std::string& text, const char* title, const museum::TrialResult& result) {
  text += fmt::format("{}: {} events\n", title, result.events);
  if (result.falsified.empty()) text += "  every property held\n";
  for (const museum::Falsified& one : result.falsified)
    text +=
        fmt::format("  FALSIFIED {} {}: {}\n", one.property->number, one.property->id, one.text);
}

}  // namespace

std::string museum_text(const MuseumReport& report, const Palette& palette) {
  std::vector<std::vector<std::string>> rows = {{"id", "tier", "", "property", "executions",
                                                 "seconds", "events", "parameters", "ranks",
                                                 "fault"}};
  for (const Found& one : report.found) rows.push_back(row_of(one));
  std::string text = table_text(rows);
  const Totals totals = totals_of(report);
  text += fmt::format("canary {}; healthy engine: {} cases, {} executions in {:.1f} s, {}\n",
                      report.canary.is_found ? "found" : palette.bad("MISSED"),
                      report.healthy.cases, report.healthy.executions, report.healthy.seconds,
                      report.healthy.is_clean() ? "no finding" : palette.bad("FINDINGS"));
  for (const std::string& finding : report.healthy.findings) text += "  " + finding + "\n";
  if (totals.bugs > 0)
    text += fmt::format(
        "{} of {} entries modelled, {} found; tier 1: {} modelled, {} found, median {:.2f} s\n",
        totals.modelled, totals.bugs, totals.found, totals.tier1_modelled, totals.tier1_found,
        median_seconds(report));
  if (totals.bugs > 0 && report.options.minimizes) text += sizes_text(report);
  if (totals.further > 0)
    text += fmt::format("{} further faults, of no catalogue: {} found\n", totals.further,
                        totals.further_found);
  return text;
}

std::string museum_json(const MuseumReport& report) {
  const Totals totals = totals_of(report);
  const Sizes sizes = sizes_of(report);
  Json entries = Json::array();
  for (const Found& one : report.found) entries.push_back(json_of(one));
  return Json{{"schema", "zeroproof.museum/1"},
              {"seed", report.options.seed},
              {"summary",
               {{"catalogue", museum::bug_catalogue().size()},
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
                {"healthy_clean", report.healthy.is_clean()},
                {"healthy_executions", report.healthy.executions},
                {"healthy_seconds", report.healthy.seconds}}},
              {"healthy_findings", report.healthy.findings},
              {"entries", entries}}
      .dump();
}

std::vector<JUnitCase> museum_cases(const MuseumReport& report) {
  std::vector<JUnitCase> cases;
  for (const Found& one : report.found) {
    JUnitCase& row = cases.emplace_back();
    row.suite = "museum";
    row.name = one.entry->id;
    row.text = std::string(one.entry->is_modelled() ? one.entry->fault : one.entry->reason);
    row.outcome = one.is_found               ? JUnitOutcome::passed
                  : one.entry->is_modelled() ? JUnitOutcome::failed
                                             : JUnitOutcome::skipped;
  }
  cases.push_back({"museum", "canary",
                   report.canary.is_found ? JUnitOutcome::passed : JUnitOutcome::failed,
                   "the canary was not found"});
  cases.push_back({"museum", "healthy",
                   report.healthy.is_clean() ? JUnitOutcome::passed : JUnitOutcome::failed,
                   fmt::format("{}", fmt::join(report.healthy.findings, "\n"))});
  return cases;
}

std::string museum_matrix_text(const MuseumReport& report) {
  std::vector<std::vector<std::string>> rows = {{"property", "entries", "escape without it"}};
  for (const auto& [number, ids] : caught_by(report)) {
    std::vector<std::string> alone;
    for (const Found& one : report.found)
      if (one.is_found && one.falsified.size() == 1 && one.falsified.contains(number))
        alone.emplace_back(one.entry->id);
    const Property* const property = find_any_property(number);
    rows.push_back({fmt::format("{} {}", number, property ? property->id : "?"),
                    std::to_string(ids.size()),
                    alone.empty() ? "none" : fmt::format("{}", fmt::join(alone, " "))});
  }
  return table_text(rows);
}

std::string museum_replay_text(const museum::ReadToken& token, const museum::TrialResult& planted,
                               const museum::TrialResult& healthy) {
  std::string text = fmt::format("{}: {}\n", token.id, train::case_json(token.specimen.spec));
  append_side(text, "planted", planted);
  append_side(text, "healthy", healthy);
  return text;
}

std::string museum_replay_json(const museum::ReadToken& token, const museum::TrialResult& planted,
                               const museum::TrialResult& healthy) {
  const auto side = [](const museum::TrialResult& result) {
    Json falsified = Json::array();
    for (const museum::Falsified& one : result.falsified)
      falsified.push_back({{"id", one.property->id},
                           {"number", one.property->number},
                           {"rank", one.rank < 0 ? Json(nullptr) : Json(one.rank)},
                           {"text", one.text}});
    return Json{{"events", result.events}, {"falsified", falsified}};
  };
  return Json{{"schema", "zeroproof.museum_replay/1"},
              {"id", token.id},
              {"case", Json::parse(train::case_json(token.specimen.spec))},
              {"schedule", museum::token_of(token.specimen, token.id)},
              {"planted", side(planted)},
              {"healthy", side(healthy)}}
      .dump();
}

}  // namespace zeroproof
