#include <fmt/format.h>
#include <fmt/ranges.h>

#include "props/report/engine_report.h"
#include "props/report/text.h"

namespace zeroproof {
namespace {

using train::EngineExplorationReport;
using train::EngineFinding;

// The scenario first, then what is unusual about the case.
std::string settings_text(const Schedule& schedule) {
  std::vector<std::string> words;
  for (const auto& [key, value] : schedule.settings)
    if (key != "found") words.push_back(fmt::format("{} {}", key, visible(value)));
  return fmt::format("{}: {}", schedule.scenario, fmt::join(words, ", "));
}

std::string certificate_text(const PctCertificate& certificate) {
  return fmt::format(
      "  PCT: n={} tasks, k={} choices, d={}, {} runs under them: a bug that takes d ordering "
      "constraints was missed with a chance of at most {:.3g}\n",
      certificate.tasks, certificate.steps, certificate.depth, certificate.runs,
      certificate.miss_chance());
}

std::string site_text(const train::SiteCount& site) {
  std::string text = fmt::format("  {}: {} choices of up to {} options, {} of them taken",
                                 site.site, site.choices, site.widest, site.taken.size());
  if (site.pairs > 0)
    text += fmt::format("; {} of {} pairs in both orders", site.pairs_in_both_orders, site.pairs);
  return text + "\n";
}

std::string shard_text(const train::EngineExplorationOptions& options) {
  if (options.shards == 1) return {};
  return fmt::format(", shard {} of {}", options.shard, options.shards);
}

std::string search_text(const EngineExplorationReport& report, double seconds) {
  std::string text = fmt::format("  {} executions, {} events", report.executions, report.events);
  if (seconds > 0.0)
    text += fmt::format(
        " in {:.2f} s, {} events/s", seconds,
        short_count(static_cast<std::uint64_t>(static_cast<double>(report.events) / seconds)));
  text += fmt::format("; {} choices, at most {} an execution\n", report.choices, report.deepest);
  text += fmt::format("  {} distinct result{}, {} distinct end{}, {} happens-before class{}",
                      report.results, report.results == 1 ? "" : "s", report.ends,
                      report.ends == 1 ? "" : "s", report.classes, report.classes == 1 ? "" : "es");
  if (report.states) text += fmt::format(", {} states", *report.states);
  if (report.transitions) text += fmt::format(", {} transitions", *report.transitions);
  if (report.has_exhausted) text += "; every order was covered";
  text += "\n";
  if (report.certificate) text += certificate_text(*report.certificate);
  for (const train::SiteCount& site : report.sites) text += site_text(site);
  for (const train::SometimesCount& condition : report.sometimes)
    text +=
        fmt::format("  sometimes {}: {}\n", condition.name,
                    condition.executions > 0 ? fmt::format("{} executions", condition.executions)
                                             : std::string("never"));
  return text;
}

std::string finding_text(const EngineFinding& finding, const Palette& palette) {
  std::string text =
      fmt::format("\n{} {}: {}\n", palette.bad("FALSIFIED"), palette.title(finding.finding.kind),
                  visible(finding.finding.text));
  text += fmt::format(
      "  {} executions failed, the first was number {}; the shortest took {} "
      "events and {} choices\n",
      finding.failing_executions, finding.first_execution + 1, finding.events_before,
      finding.schedule.choices.size());
  if (finding.runs == 0) return text;
  text +=
      fmt::format("  minimised in {} runs to {}\n", finding.runs, settings_text(finding.minimized));
  text += fmt::format("  {} events, {} choices, of which {} are not the first option{}\n",
                      finding.events, finding.minimized.choices.size(), finding.decisions,
                      finding.is_minimal ? "; each of those is needed" : "");
  return text;
}

}  // namespace

std::string engine_exploration_text(const TimedExploration& exploration, const Palette& palette) {
  const EngineExplorationReport& report = exploration.report;
  const train::EngineExplorationOptions& options = report.options;
  const Schedule plain = train::schedule_of(options.engine_case, options.seed, {}, {});
  std::string text =
      fmt::format("{}; {}{}{}\n", settings_text(plain), options.scheduler,
                  options.runs_twice ? ", each execution twice" : "", shard_text(options));
  text += search_text(report, exploration.seconds);
  if (!report.refusal.empty()) text += fmt::format("  refused as documented: {}\n", report.refusal);
  if (!report.divergence.empty()) text += fmt::format("  {}\n", report.divergence);
  const ExplorationStatus status = status_of(report);
  if (status == ExplorationStatus::held) {
    text += palette.good("HELD") + "\n";
  } else if (status != ExplorationStatus::falsified) {
    text += palette.bad(exploration_status_name(status)) + "\n";
  }
  for (const EngineFinding& finding : report.findings) text += finding_text(finding, palette);
  return text;
}

std::string engine_replay_text(const train::EngineReplay& replay, const Palette& palette) {
  std::string text = settings_text(replay.schedule) + "\n";
  if (!replay.divergence.empty())
    return text + fmt::format("  {}: {}\n", palette.bad("does not fit"), replay.divergence);
  text += fmt::format("  simulated: {} events, {} choices\n", replay.run.steps,
                      replay.schedule.choices.size());
  for (const train::CaseFinding& finding : replay.run.findings)
    text +=
        fmt::format("  {} {}: {}\n", palette.bad("FALSIFIED"), finding.kind, visible(finding.text));
  if (replay.expected && !replay.is_reproduced())
    text += fmt::format("  {}: the schedule promises {}, the run shows {}\n",
                        palette.bad("not reproduced"), *replay.expected,
                        train::found_word(replay.run.findings));
  if (!replay.host) return text;
  const train::RuntimeComparison& host = *replay.host;
  text += fmt::format(
      "  host: {} order tokens, {} values, {} choices of nodes: {}\n", host.tokens, host.values,
      host.node_choices,
      host.difference.empty() ? palette.good("equal") : palette.bad(visible(host.difference)));
  return text;
}

}  // namespace zeroproof
