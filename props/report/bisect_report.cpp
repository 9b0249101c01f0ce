#include "props/report/bisect_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace zeroproof {
namespace {

using BisectJson = nlohmann::ordered_json;
using subject::Presence;
using subject::PresenceChange;

constexpr std::array<std::string_view, 3> kPresences = {"absent", "present", "cannot run"};

std::string_view word_of(const std::optional<Presence>& presence) {
  return presence ? kPresences[static_cast<std::size_t>(*presence)] : "not tried";
}

bool is_present(const ReleaseTrial& trial) {
  return trial.presence == Presence::present;
}

// "0.19.6 brought it (0.19.5 is without; 0.19.5.1 could not run)".
std::string change_text(const BisectDocument& document, const PresenceChange& change) {
  const bool has_come = change.becomes == Presence::present;
  std::string between;
  for (std::size_t at = change.before + 1; at < change.after; ++at)
    between += fmt::format("{}{}", between.empty() ? "; could not run: " : ", ",
                           document.trials[at].release);
  return fmt::format("{} {} {} it ({} is {}{})", document.package,
                     document.trials[change.after].release, has_come ? "brought" : "mended",
                     document.trials[change.before].release, has_come ? "without" : "with it",
                     between);
}

// What is so at the ends of the range.
std::string ends_text(const BisectDocument& document) {
  const auto runs = [](const ReleaseTrial& one) {
    return one.presence && one.presence != Presence::cannot_run;
  };
  const auto& trials = document.trials;
  const auto first = std::find_if(trials.begin(), trials.end(), runs);
  const auto last = std::find_if(trials.rbegin(), trials.rend(), runs);
  if (first == trials.end()) return "no release could run\n";
  std::string text;
  if (is_present(*first)) text += fmt::format("{} has it already\n", first->release);
  if (is_present(*last)) text += fmt::format("{} has it still\n", last->release);
  if (std::none_of(trials.begin(), trials.end(), is_present)) text += "no release has it\n";
  return text;
}

}  // namespace

std::string bisect_text(const BisectDocument& document) {
  const auto tried =
      std::count_if(document.trials.begin(), document.trials.end(),
                    [](const ReleaseTrial& one) { return one.presence.has_value(); });
  std::string text = fmt::format("bisect {} on {}: {} of {} releases of {} tried\n",
                                 document.finding.verdict.signature, document.finding.engine, tried,
                                 document.trials.size(), document.package);
  for (const ReleaseTrial& one : document.trials)
    if (one.presence)
      text += fmt::format("  {:<10}  {:<10}  {}\n", one.release, word_of(one.presence), one.text);
  for (const PresenceChange& change : document.changes)
    text += change_text(document, change) + "\n";
  return text + ends_text(document);
}

std::string bisect_json(const BisectDocument& document) {
  BisectJson releases = BisectJson::array();
  for (const ReleaseTrial& one : document.trials)
    releases.push_back(
        {{"release", one.release}, {"presence", word_of(one.presence)}, {"text", one.text}});
  BisectJson changes = BisectJson::array();
  for (const PresenceChange& change : document.changes)
    changes.push_back({{"before", document.trials[change.before].release},
                       {"after", document.trials[change.after].release},
                       {"becomes", word_of(change.becomes)}});
  return BisectJson{{"schema", "zeroproof.bisect/1"},
                    {"engine", document.finding.engine},
                    {"settings", document.finding.settings},
                    {"signature", document.finding.verdict.signature},
                    {"package", document.package},
                    {"releases", releases},
                    {"changes", changes}}
      .dump(1);
}

}  // namespace zeroproof
