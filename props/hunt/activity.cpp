#include "props/hunt/activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "props/reference/rule.h"
#include "props/registry.h"
#include "props/relations/relation.h"
#include "props/report/table.h"
#include "props/run_properties.h"

namespace zeroproof::hunt {
namespace {

constexpr std::string_view kRecorded =
    "recordings of DeepSpeed have its events; the engine's runs do not";

constexpr std::string_view kCounted =
    "the engine's own policy counts no hooks; faults and policies of upstream do";

constexpr std::array kElsewhere = {
    Elsewhere{"P27", "compares a recording with the recording of stage 0"},
    Elsewhere{"P41", kRecorded},
    Elsewhere{"P59", kRecorded},
    Elsewhere{"P60", kRecorded},
    Elsewhere{"P70", kRecorded},
    Elsewhere{"P71", kRecorded},
    Elsewhere{"P73", kRecorded},
    Elsewhere{"P75", kRecorded},
    Elsewhere{"P78", "no program fails inside the recompute of a checkpoint; recordings do"},
    Elsewhere{"P80", kRecorded},
    Elsewhere{"P83", kRecorded},
    Elsewhere{"R11", kCounted},
    Elsewhere{"count.once", kCounted},
};

bool is_elsewhere(std::string_view number) {
  return std::ranges::any_of(kElsewhere, [&](const Elsewhere& it) { return it.number == number; });
}

// Judged by a monitor of events or accesses; or by what all ranks see.
bool judges_runs(const Property& property) {
  const bool is_monitored = property.scopes.has(Scope::access) || property.scopes.has(Scope::trace);
  return (is_monitored && !is_elsewhere(property.number)) || property.number == "P40";
}

std::vector<Checker> collected() {
  std::vector<Checker> all;
  const auto add = [&](const Property& property) {
    all.push_back({property.number, property.number, property.statement});
  };
  for (const Property& property : all_properties())
    if (judges_runs(property)) add(property);
  for (const Property& property : run_properties())
    if (!is_elsewhere(property.number)) add(property);
  for (const relations::Relation& relation : relations::all_relations()) add(relation.property());
  for (const reference::RuleInfo& rule : reference::rules())
    if (!is_elsewhere(rule.id)) all.push_back({rule.id, rule.property, rule.sentence});
  return all;
}

}  // namespace

const std::vector<Checker>& checkers() {
  static const std::vector<Checker> kAll = collected();
  return kAll;
}

std::span<const Elsewhere> judged_elsewhere() {
  return kElsewhere;
}

std::uint64_t Activity::of(std::string_view name) const {
  const auto at = active.find(name);
  return at == active.end() ? 0 : at->second;
}

std::string Activity::share(std::string_view name) const {
  constexpr std::uint64_t kWhole = 100;
  const std::uint64_t active_cases = of(name);
  if (active_cases == 0) return "never";
  const std::uint64_t percent = (kWhole * active_cases + cases / 2) / cases;
  return percent == 0 ? "under 1 %" : fmt::format("{} %", percent);
}

std::string activity_text(const Activity& activity) {
  std::vector<std::vector<std::string>> rows;
  std::size_t idle = 0;
  for (const Checker& checker : checkers()) {
    idle += activity.of(checker.name) == 0 ? 1U : 0U;
    rows.push_back({std::string(checker.name), std::to_string(activity.of(checker.name)),
                    activity.share(checker.name), std::string(checker.sentence)});
  }
  return table_text(rows) + fmt::format("{} checkers, {} of which had no case to judge among {}\n",
                                        rows.size(), idle, activity.cases);
}

// A relation between two runs, whose sentence stands nowhere else. Sentences of properties stand in
// docs/reference/trace_properties.md, those of the walker's rules in activity_text().
bool is_relation(const Checker& checker) {
  return checker.name.starts_with("MR");
}

// "`P1` 91 %, `P2` 73 %", some a line.
std::string shares_in_lines(const Activity& activity) {
  constexpr int kInLine = 8;
  std::string text;
  int count = 0;
  for (const Checker& checker : checkers()) {
    if (is_relation(checker)) continue;
    if (count > 0) text += count % kInLine == 0 ? ",\n" : ", ";
    text += fmt::format("`{}` {}", checker.name, activity.share(checker.name));
    ++count;
  }
  return text + "\n";
}

std::string activity_markdown(const Activity& activity) {
  std::string text =
      shares_in_lines(activity) + "\n| relation | sentence | cases |\n|---|---|---|\n";
  for (const Checker& checker : checkers())
    if (is_relation(checker))
      text += fmt::format("| `{}` | {} | {} |\n", checker.name, checker.sentence,
                          activity.share(checker.name));
  text += "\n| checkers | which runs they judge, in place of a hunt's |\n|---|---|\n";
  std::map<std::string_view, std::string> by_reason;
  for (const Elsewhere& one : kElsewhere)
    by_reason[one.why] += fmt::format("{}`{}`", by_reason[one.why].empty() ? "" : " ", one.number);
  for (const auto& [why, numbers] : by_reason) text += fmt::format("| {} | {} |\n", numbers, why);
  return text;
}

}  // namespace zeroproof::hunt
