#include "props/report/replay_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "props/report/text.h"

namespace zeroproof {
namespace {

constexpr std::size_t kStructureLinesMax = 3;

struct Totals {
  std::int64_t tasks = 0;
  std::int64_t tasks_matched = 0;
  std::int64_t tasks_raced = 0;
  std::uint64_t calls = 0;
  std::uint64_t calls_matched = 0;
  std::size_t held = 0;
  std::size_t falsified = 0;
  std::size_t latent = 0;

  void add(const TraceReplay& trace) {
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
    return line.empty() ? "nothing to compare" : line;
  }

 private:
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
                     where, visible(finding.text));
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
      fmt::format("{} traces: {} ok, {} mismatched, {} unreadable", summary.traces, summary.ok,
                  summary.mismatched, summary.unreadable);
  const bool is_good = summary.ok == summary.traces && !report.is_interrupted;
  return fmt::format("{}{}; {}\n", is_good ? palette.good(counts) : palette.bad(counts),
                     report.is_interrupted ? " (interrupted)" : "", totals.levels_text());
}

}  // namespace

std::string replay_text(const ReplayReport& report, const Palette& palette) {
  std::string text;
  Totals totals;
  for (const TraceReplay& trace : report.traces) {
    Totals own;
    own.add(trace);
    totals.add(trace);
    text += fmt::format("{}  {}  {}\n", status_word(trace, palette), visible(trace.path),
                        own.levels_text());
    text += details(trace, report.traces.size() == 1, palette);
  }
  return text + summary_line(report, totals, palette);
}

}  // namespace zeroproof
