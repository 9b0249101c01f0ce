#include "props/report/train_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "props/registry.h"
#include "props/report/json_values.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;
using train::CellStatus;
using train::TrainReport;

constexpr std::int64_t kIncomparable = std::numeric_limits<std::int64_t>::max();

std::string status_word(const TrainReport& report, const Palette& palette) {
  std::string word(train::status_name(report.status));
  if (report.status == CellStatus::equal && !report.is_compared) word = "trained";
  if (report.status == CellStatus::refused) word += " " + report.refusal;
  if (report.properties && report.properties->is_falsified()) word += ", FALSIFIED";
  if (report.is_bad()) return palette.bad(word);
  return report.status == CellStatus::equal ? palette.good(word) : palette.notice(word);
}

std::string cell_text(const train::TrainCell& cell) {
  return fmt::format("{} stage {}, {} rank{}, {}, {}.backward, {} data", cell.scenario, cell.stage,
                     cell.world_size, cell.world_size == 1 ? "" : "s",
                     train::precision_name(cell.precision), train::backward_name(cell.backward),
                     train::data_name(cell.data));
}

std::string ulps_text(std::int64_t ulps) {
  if (ulps == kIncomparable) return "not comparable";
  return fmt::format("{} ulp{}", ulps, ulps == 1 ? "" : "s");
}

std::string difference_text(const char* which, const train::Difference& difference) {
  std::string place = difference.name;
  if (difference.index >= 0) place += fmt::format("[{}]", difference.index);
  if (difference.index < 0) return fmt::format("  {}: {}: only one side has it\n", which, place);
  return fmt::format("  {}: {}: {} is not {} ({})\n", which, place, difference.engine,
                     difference.baseline, ulps_text(difference.ulps));
}

OrderedJson difference_json(const train::Difference& difference) {
  OrderedJson json = {{"name", difference.name}, {"ulps", difference.ulps}};
  if (difference.index >= 0) {
    json["index"] = difference.index;
    json["engine"] = difference.engine;
    json["baseline"] = difference.baseline;
  }
  return json;
}

OrderedJson cell_json(const TrainReport& report) {
  const train::TrainCell& cell = report.cell;
  OrderedJson json = {{"stage", cell.stage},
                      {"world_size", cell.world_size},
                      {"scenario", cell.scenario},
                      {"dtype", train::precision_name(cell.precision)}};
  if (report.is_compared) {
    json["equal"] = report.status == CellStatus::equal;
    const auto& worst = report.comparison.worst;
    json["worst"] = worst ? difference_json(*worst) : OrderedJson{{"name", ""}, {"ulps", 0}};
  } else {
    json["equal"] = nullptr;
    json["worst"] = nullptr;
  }
  json["steps"] = report.steps;
  if (report.skipped_steps > 0) json["skipped_steps"] = report.skipped_steps;
  json["status"] = train::status_name(report.status);
  json["refused"] = report.refusal.empty() ? OrderedJson() : OrderedJson(report.refusal);
  json["error"] = report.error.empty() ? OrderedJson() : OrderedJson(report.error);
  json["backward"] = train::backward_name(cell.backward);
  json["data"] = train::data_name(cell.data);
  json["policy"] = cell.policy;
  json["quirks"] = cell.quirks.text();
  json["values"] = report.comparison.values;
  if (report.comparison.first) json["first"] = difference_json(*report.comparison.first);
  if (report.loss_scale) json["loss_scale"] = *report.loss_scale;
  if (report.properties) json["properties"] = properties_json<OrderedJson>(*report.properties);
  json["live_bytes"] = report.live_bytes;
  json["peak_bytes"] = report.peak_bytes;
  return json;
}

std::vector<Finding> findings_of(const TrainReport& report) {
  return report.properties ? report.properties->falsified : std::vector<Finding>();
}

std::string finding_text(const Finding& finding) {
  const std::string where =
      finding.lc > 0 ? fmt::format("lc {} ({})", finding.lc, finding.event) : finding.event;
  return fmt::format("  {} {} on rank {}, {}: {}\n", finding.property->number, finding.property->id,
                     finding.rank, where, finding.text);
}

std::string numbers_text(const std::vector<std::string_view>& numbers) {
  return numbers.empty() ? std::string("none") : fmt::format("{}", fmt::join(numbers, " "));
}

std::string properties_text(const TrainReport& report) {
  if (!report.properties) return {};
  std::vector<std::string_view> held;
  for (const Property& property : all_properties())
    if (std::ranges::find(report.properties->held, &property) != report.properties->held.end())
      held.push_back(property.number);
  std::string text = fmt::format("  properties held: {}\n", numbers_text(held));
  for (const Finding& finding : report.properties->falsified) text += finding_text(finding);
  return text;
}

std::string tallies_text(const train::MatrixReport& report, const Palette& palette) {
  std::vector<std::string_view> held;
  std::string falsified;
  std::string others;
  for (const train::PropertyTally& tally : report.properties) {
    if (tally.falsified > 0) {
      falsified +=
          fmt::format("{} {} in {} of {} cells\n", palette.bad("FALSIFIED"), tally.property->number,
                      tally.falsified, tally.falsified + tally.held);
    } else if (tally.held > 0) {
      held.push_back(tally.property->number);
    } else {
      others += fmt::format("  {}: {}\n", tally.property->number, tally.reason);
    }
  }
  if (report.properties.empty()) return {};
  return fmt::format("{} properties held: {}\n", held.size(), numbers_text(held)) + falsified +
         "not applicable in any cell:\n" + others;
}

OrderedJson tallies_json(const train::MatrixReport& report) {
  OrderedJson all = OrderedJson::array();
  for (const train::PropertyTally& tally : report.properties) {
    OrderedJson one = {{"id", tally.property->id},
                       {"number", tally.property->number},
                       {"held", tally.held},
                       {"falsified", tally.falsified}};
    if (!tally.was_judged()) one["not_applicable"] = tally.reason;
    all.push_back(std::move(one));
  }
  return all;
}

std::string totals_text(const train::MatrixReport& report) {
  return fmt::format("{} cells: {} equal, {} refused as documented, {} different, {} failed\n",
                     report.cells.size(), report.count(CellStatus::equal),
                     report.count(CellStatus::refused), report.count(CellStatus::different),
                     report.count(CellStatus::failed));
}

// A scenario that is in no catalogue has none.
std::vector<std::string> notes_of(const TrainReport& report) {
  const auto scenario = train::find_scenario(report.cell.scenario);
  return scenario ? train::quirk_notes(**scenario, report.cell) : std::vector<std::string>();
}

// An update that no step made is not compared.
std::string skipped_text(const TrainReport& report) {
  if (report.skipped_steps == 0) return {};
  const bool is_all = report.skipped_steps == report.steps;
  return fmt::format("  {} of {} steps skipped for an overflow{}\n", report.skipped_steps,
                     report.steps, is_all ? ": no update was compared; give more --steps" : "");
}

}  // namespace

std::string train_text(const TrainReport& report, const Palette& palette) {
  std::string text = fmt::format("{}  {}\n", status_word(report, palette), cell_text(report.cell));
  for (const std::string& note : notes_of(report)) text += fmt::format("  note: {}\n", note);
  if (!report.error.empty()) text += fmt::format("  {}\n", report.error);
  if (report.status == CellStatus::equal || report.status == CellStatus::different) {
    text += fmt::format("  {} steps", report.steps);
    if (report.is_compared)
      text += fmt::format("; {} values of gradients, parameters and optimizer state compared",
                          report.comparison.values);
    if (report.loss_scale) text += fmt::format("; loss scale {}", *report.loss_scale);
    text += fmt::format("; at most {} bytes on the device\n", report.peak_bytes);
    text += skipped_text(report);
  }
  text += properties_text(report);
  if (!report.is_compared) return text;
  const train::Comparison& comparison = report.comparison;
  if (!comparison.first) return text + "  bitwise equal to the unsharded baseline\n";
  text += difference_text("first difference", *comparison.first);
  return text + difference_text("worst", *comparison.worst);
}

std::string train_json(const TrainReport& report) {
  OrderedJson document = {{"schema", "zeroproof.train/1"}};
  document.update(cell_json(report));
  const auto notes = notes_of(report);
  if (!notes.empty()) document["notes"] = notes;
  return document_text(document);
}

std::string matrix_text(const train::MatrixReport& report, const Palette& palette) {
  std::string text;
  for (const TrainReport& cell : report.cells) {
    text += fmt::format("{}  {}", status_word(cell, palette), cell_text(cell.cell));
    if (cell.is_bad() && !cell.error.empty()) text += ": " + cell.error;
    const auto& worst = cell.comparison.worst;
    if (cell.status == CellStatus::equal && worst)
      text += fmt::format(" (within the bound; worst {}, {})", worst->name, ulps_text(worst->ulps));
    text += '\n';
    for (const Finding& finding : findings_of(cell)) text += finding_text(finding);
  }
  return text + totals_text(report) + tallies_text(report, palette);
}

std::string matrix_json(const train::MatrixReport& report) {
  OrderedJson document = {{"schema", "zeroproof.matrix/1"},
                          {"summary",
                           {{"cells", report.cells.size()},
                            {"equal", report.count(CellStatus::equal)},
                            {"refused", report.count(CellStatus::refused)},
                            {"different", report.count(CellStatus::different)},
                            {"failed", report.count(CellStatus::failed)}}}};
  document["properties"] = tallies_json(report);
  document["cells"] = OrderedJson::array();
  for (const TrainReport& cell : report.cells) {
    OrderedJson json = cell_json(cell);
    if (json.contains("properties")) {  // the tallies have the others
      json["properties"].erase("held");
      json["properties"].erase("not_applicable");
    }
    document["cells"].push_back(std::move(json));
  }
  return document_text(document);
}

std::vector<JUnitCase> train_cases(const std::vector<TrainReport>& cells) {
  std::vector<JUnitCase> cases;
  for (const TrainReport& report : cells) {
    JUnitCase made{.suite = "train", .name = cell_text(report.cell), .text = report.error};
    for (const Finding& finding : findings_of(report)) made.text += finding_text(finding);
    if (report.is_bad()) made.outcome = JUnitOutcome::failed;
    if (report.status == CellStatus::not_applicable) made.outcome = JUnitOutcome::skipped;
    cases.push_back(std::move(made));
  }
  return cases;
}

}  // namespace zeroproof
