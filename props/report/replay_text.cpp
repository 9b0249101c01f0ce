#include "props/report/replay_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "props/replay/rank_set.h"
#include "props/report/text.h"

namespace zeroproof {
namespace {

constexpr std::size_t kStructureLinesMax = 3;
constexpr std::size_t kTracesShown = 24;  // one by one; more are reported in groups
constexpr std::size_t kTableLines = 38;
constexpr std::size_t kRunsShown = 6;
constexpr std::size_t kFindingColumns = 480;  // of one finding's text
constexpr std::size_t kLabelWidth = 14;
constexpr std::size_t kRulesLines = 6;
constexpr std::size_t kRunLines = 9;

struct Totals {
  std::int64_t tasks = 0;
  std::int64_t tasks_matched = 0;
  std::int64_t tasks_raced = 0;
  std::uint64_t calls = 0;
  std::uint64_t calls_matched = 0;
  std::size_t held = 0;
  std::size_t falsified = 0;
  std::size_t latent = 0;
  TraceCounts seen;

  void add(const TraceReplay& trace) {
    seen.collectives += trace.counts.collectives;
    seen.messages += trace.counts.messages;
    seen.backwards += trace.counts.backwards;
    seen.hooks += trace.counts.hooks;
    seen.steps += trace.counts.steps;
    if (trace.queue) {
      tasks += trace.queue->graph_tasks;
      tasks_matched += trace.queue->matched;
      tasks_raced += trace.queue->races;
    }
    if (trace.state) {
      calls += trace.state->calls;
      calls_matched += trace.state->matched;
    }
    if (!trace.properties) return;
    held += trace.properties->held.size();
    falsified += trace.properties->falsified.size();
    latent += trace.properties->latent.size();
  }

  std::string levels_text() const {
    std::vector<std::string> words;
    if (tasks > 0) words.push_back(fmt::format("queue {}/{}", tasks_matched, tasks));
    if (tasks_raced > 0) words.back() += fmt::format(" (+{} races)", tasks_raced);
    if (calls > 0) words.push_back(fmt::format("state {}/{}", calls_matched, calls));
    if (held + falsified + latent > 0) words.push_back(properties_text());
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : "  ") + word;
    return line.empty() ? seen_text() : line;
  }

 private:
  // What the rules of frameworks and the comparison of ranks had to look at.
  std::string seen_text() const {
    const std::pair<std::uint64_t, std::string_view> kinds[] = {{seen.collectives, "collective"},
                                                                {seen.messages, "message"},
                                                                {seen.backwards, "backward"},
                                                                {seen.hooks, "gradient"},
                                                                {seen.steps, "step"}};
    std::string text;
    for (const auto& [count, what] : kinds)
      if (count > 0) text += (text.empty() ? "" : ", ") + counted(count, what);
    return text.empty() ? "no event to compare" : text;
  }

  std::string properties_text() const {
    std::string words = fmt::format("properties {} held", held);
    if (latent > 0) words += fmt::format(", {} latent", latent);
    if (falsified > 0) words += fmt::format(", {} falsified", falsified);
    return words;
  }
};

std::string finding_line(std::string_view word, const Finding& finding) {
  std::string where = finding.lc > 0 ? fmt::format(" at lc {} of rank {}", finding.lc, finding.rank)
                                     : fmt::format(" on rank {}", finding.rank);
  if (!finding.event.empty()) where += fmt::format(" ({})", finding.event);
  return fmt::format("    {} {} {}{}: {}\n", word, finding.property->number, finding.property->id,
                     where, elided(visible(finding.text), kFindingColumns));
}

std::string structure_lines(const TraceReplay& trace, const Palette& palette) {
  std::string text;
  const std::size_t shown = std::min(trace.structure.size(), kStructureLinesMax);
  for (std::size_t i = 0; i < shown; ++i) {
    const StructureFinding& finding = trace.structure[i];
    text += fmt::format("    {} line {}: {}: {}\n", palette.bad("FORMAT"), finding.line_number,
                        finding.rule, visible(finding.text));
  }
  if (trace.structure_count > shown) {
    text += fmt::format("    {} {} more of this kind\n", palette.bad("FORMAT"),
                        trace.structure_count - shown);
  }
  return text;
}

std::string details(const TraceReplay& trace, bool has_latent, const Palette& palette) {
  std::string text;
  if (trace.fault) text += fmt::format("    {}\n", visible(trace.fault->text));
  if (trace.queue && trace.queue->first_mismatch) {
    text += fmt::format("    {} queue: {} of {} graph tasks; first: {}\n", palette.bad("MISMATCH"),
                        trace.queue->mismatched, trace.queue->graph_tasks,
                        visible(trace.queue->first_mismatch->text));
  }
  if (trace.state && trace.state->first_mismatch) {
    text += fmt::format(
        "    {} state under {}: {} of {} calls; first at lc {}: {}\n", palette.bad("MISMATCH"),
        trace.state->policy, trace.state->calls - trace.state->matched, trace.state->calls,
        trace.state->first_mismatch->lc, visible(trace.state->first_mismatch->text));
  }
  text += structure_lines(trace, palette);
  if (!trace.properties) return text;
  for (const Finding& finding : trace.properties->falsified) {
    text += finding_line(palette.bad("FALSIFIED"), finding);
  }
  if (!has_latent) return text;
  for (const Finding& finding : trace.properties->latent) {
    text += finding_line(palette.notice("latent"), finding);
  }
  return text;
}

std::string status_word(const TraceReplay& trace, const Palette& palette) {
  if (trace.fault) return palette.bad("UNREADABLE");
  return trace.agrees() ? palette.good("ok        ") : palette.bad("FINDINGS  ");
}

std::string summary_line(const ReplayReport& report, const Totals& totals, const Palette& palette) {
  const ReplaySummary summary = report.summary();
  const std::string counts =
      fmt::format("{}: {} ok, {} mismatched, {} unreadable", counted(summary.traces, "trace"),
                  summary.ok, summary.mismatched, summary.unreadable);
  const bool is_good = summary.ok == summary.traces && !report.is_interrupted;
  return fmt::format("{}{}; {}\n", is_good ? palette.good(counts) : palette.bad(counts),
                     report.is_interrupted ? " (interrupted)" : "", totals.levels_text());
}

std::string own_levels(const TraceReplay& trace) {
  Totals own;
  own.add(trace);
  return own.levels_text();
}

std::string trace_lines(const TraceReplay& trace, bool has_latent, const Palette& palette) {
  return fmt::format("{}  {}  {}\n", status_word(trace, palette), visible(trace.path),
                     own_levels(trace)) +
         details(trace, has_latent, palette);
}

std::string alike_lines(const AlikeTraces& alike, const Palette& palette) {
  if (alike.count == 1) return trace_lines(*alike.first, false, palette);
  const std::vector<std::int32_t>& ranks = alike.ranks;
  const bool is_one_run = std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end();
  const std::string of = is_one_run ? ", " + rank_words(ranks) : std::string();
  return fmt::format("{}  {} traces of {}{}  each {}  ({}, ...)\n",
                     status_word(*alike.first, palette), alike.count, visible(alike.first->program),
                     of, alike.levels, visible(alike.first->path)) +
         details(*alike.first, false, palette);
}

std::string grouped_table(const ReplayReport& report, const Palette& palette) {
  std::string text;
  for (const AlikeTraces& alike : alike_traces(report)) text += alike_lines(alike, palette);
  return limited_lines(text, kTableLines);
}

std::string labelled(std::string_view label, const std::string& text, std::size_t columns) {
  const std::size_t width = columns > kLabelWidth + 20 ? columns - kLabelWidth : 20;
  std::string out;
  for (const std::string& line : wrapped_lines(visible(text), width))
    out += fmt::format("{}{}\n", padded(out.empty() ? label : "", kLabelWidth), line);
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, "; "));
}

// What was compared across the ranks of each run, and what could not be.
std::string runs_text(const ReplayReport& report, std::size_t columns) {
  std::string text;
  std::size_t shown = 0;
  for (const RunComparison& run : report.runs) {
    if (shown++ == kRunsShown) break;
    const std::string who = run.ranks.empty() ? run.run : rank_words(run.ranks);
    if (!run.checked.empty())
      text += labelled("compared", fmt::format("{}: {}", who, joined(run.checked)), columns);
    for (const std::string& one : run.skipped) text += labelled("not compared", one, columns);
  }
  if (report.runs.size() > kRunsShown)
    text += labelled(
        "compared",
        fmt::format("the ranks of {} more runs: see --json", report.runs.size() - kRunsShown),
        columns);
  return text;
}

// The ranks of all traces that say the same, by what they say; most ranks first.
std::vector<std::pair<std::string, std::vector<std::int32_t>>> by_words(
    const ReplayReport& report,
    const std::function<std::vector<std::string>(const TraceReplay&)>& words_of) {
  std::map<std::string, std::vector<std::int32_t>> ranks;
  for (const TraceReplay& trace : report.traces)
    if (trace.story)
      for (const std::string& words : words_of(trace)) ranks[words].push_back(trace.story->rank);
  std::vector<std::pair<std::string, std::vector<std::int32_t>>> all;
  for (auto& [words, of] : ranks) {
    std::sort(of.begin(), of.end());
    of.erase(std::unique(of.begin(), of.end()), of.end());
    all.emplace_back(words, std::move(of));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return all;
}

// Which rules of the framework were applied, and which could not be.
std::string rules_text(const ReplayReport& report, std::size_t columns) {
  const auto rules_of = [](const TraceReplay& trace) {
    const std::vector<std::string>& rules = trace.story->checked.rules;
    return rules.empty() ? std::vector<std::string>{}
                         : std::vector{fmt::format("{}: {}", framework_name(trace.story->framework),
                                                   joined(rules))};
  };
  const auto left_out_of = [](const TraceReplay& trace) { return trace.story->checked.left_out; };
  std::string text;
  for (const auto& [words, ranks] : by_words(report, rules_of))
    text += labelled("checked", words, columns);
  text = limited_lines(text, kRulesLines);
  std::string left_out;
  for (const auto& [words, ranks] : by_words(report, left_out_of))
    left_out += labelled("not checked", fmt::format("{}: {}", rank_words(ranks), words), columns);
  return text + limited_lines(left_out, kRulesLines);
}

}  // namespace

// Findings first, since lines may be left out.
std::vector<AlikeTraces> alike_traces(const ReplayReport& report) {
  std::map<std::string, std::size_t> places;
  std::vector<AlikeTraces> groups;
  for (const TraceReplay& trace : report.traces) {
    std::string levels = own_levels(trace);
    const std::string looks =
        fmt::format("{}\n{}\n{}\n{}", trace.program, levels, status_word(trace, Palette()),
                    trace.story ? trace.story->run : trace.path);
    const auto [place, is_new] = places.try_emplace(looks, groups.size());
    if (is_new) groups.push_back({.first = &trace, .levels = std::move(levels)});
    AlikeTraces& alike = groups[place->second];
    ++alike.count;
    if (trace.story) alike.ranks.push_back(trace.story->rank);
  }
  for (AlikeTraces& alike : groups) std::sort(alike.ranks.begin(), alike.ranks.end());
  std::stable_sort(groups.begin(), groups.end(), [](const AlikeTraces& a, const AlikeTraces& b) {
    return a.first->is_ok() < b.first->is_ok();
  });
  return groups;
}

std::string replay_text(const ReplayReport& report, std::size_t columns, const Palette& palette) {
  std::string table;
  Totals totals;
  for (const TraceReplay& trace : report.traces) totals.add(trace);
  if (report.traces.size() > kTracesShown)
    table = grouped_table(report, palette);
  else
    for (const TraceReplay& trace : report.traces)
      table += trace_lines(trace, report.traces.size() == 1, palette);
  const std::string summary = summary_line(report, totals, palette);
  return limited_lines(table, kTableLines) + summary + rules_text(report, columns) +
         limited_lines(runs_text(report, columns), kRunLines);
}

}  // namespace zeroproof
