#include "props/report/diagnosis_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "props/replay/rank_set.h"
#include "props/report/text.h"

namespace zeroproof {
namespace {

constexpr std::size_t kDiagnosisLabelWidth = 10;
constexpr std::size_t kWhereWidth = 16;
constexpr std::size_t kOthersMax = 3;
constexpr std::size_t kFilesShownMax = 12;  // entries of the text; the JSON has all
constexpr std::size_t kMomentsShownMax = 16;
constexpr std::size_t kWaitsMax = 4;
constexpr std::size_t kDumpsShown = 24;  // one by one
constexpr std::size_t kWhatColumns = 700;
constexpr std::size_t kHeadingsMax = 5;  // lines for entries that are only named
constexpr std::size_t kNextMax = 3;      // lines for what to do next

std::string ranks_text(const std::vector<std::int32_t>& ranks) {
  return ranks.empty() ? std::string() : " on " + rank_words(ranks);
}

// "ranks 0–16 wait for rank 17 in all_reduce number 4 of group world".
std::string wait_text(const DiagnosisWait& wait) {
  const bool has_several = wait.ranks.size() > 1;
  const std::string who = wait.ranks.empty() ? rank_words({wait.rank}) : rank_words(wait.ranks);
  std::string text = fmt::format("{} wait{}", who, has_several ? "" : "s");
  if (!wait.for_ranks.empty()) text += " for " + rank_words(wait.for_ranks);
  return fmt::format("{} in {}", text, wait.text);
}

std::string paragraph(std::string_view label, std::string_view text, std::size_t columns) {
  const std::size_t indent = 4 + kDiagnosisLabelWidth;
  const std::size_t width = columns > indent + 20 ? columns - indent : 20;
  std::string out;
  for (const std::string& line : wrapped_lines(visible(text), width)) {
    out += fmt::format("    {}{}\n", padded(out.empty() ? label : "", kDiagnosisLabelWidth), line);
  }
  return out;
}

// The text of a moment hangs below its clock.
std::string moment_lines(const DiagnosisMoment& moment, bool is_first, std::size_t columns) {
  const std::string where = moment.lc > 0 ? fmt::format("rank {} lc {}", moment.rank, moment.lc)
                                          : fmt::format("rank {}", moment.rank);
  constexpr std::size_t kIndent = 4 + kDiagnosisLabelWidth + 3 + kWhereWidth;
  const std::size_t width = columns > kIndent + 30 ? columns - kIndent : 30;
  std::string text;
  for (const std::string& line : wrapped_lines(visible(moment.text), width)) {
    const bool is_begin = text.empty();
    text += fmt::format(
        "    {}{} {}{}\n", padded(is_first && is_begin ? "order" : "", kDiagnosisLabelWidth),
        moment.is_bad && is_begin ? ">>" : "  ", padded(is_begin ? where : "", kWhereWidth), line);
  }
  return text;
}

std::string gravity_word(Gravity gravity, const Palette& palette) {
  const std::string word(gravity_name(gravity));
  if (gravity == Gravity::defect) return palette.bad(word);
  return gravity == Gravity::hazard ? palette.notice(word) : word;
}

std::string waits_text(const std::vector<DiagnosisWait>& waits, std::size_t columns) {
  std::string text;
  const std::size_t shown = std::min(waits.size(), kWaitsMax);
  for (std::size_t at = 0; at < shown; ++at)
    text += paragraph("waits", wait_text(waits[at]), columns);
  if (waits.size() > shown)
    text += paragraph(
        "", fmt::format("and {} more places where ranks wait: see --json", waits.size() - shown),
        columns);
  return text;
}

std::string entry_text(const Diagnosis& one, std::size_t number, std::size_t columns,
                       const Palette& palette) {
  std::string text = fmt::format("  {}. {} {}{}\n", number, gravity_word(one.gravity, palette),
                                 palette.title(one.kind), ranks_text(one.ranks));
  text += paragraph("what", elided(one.what, kWhatColumns), columns);
  if (!one.parameter.empty()) text += paragraph("parameter", one.parameter, columns);
  if (one.last_common)
    text += paragraph(
        "in common",
        fmt::format("the ranks agree up to {}{}", one.last_common->text,
                    one.last_common->lc > 0 ? fmt::format(" (rank {} lc {})", one.last_common->rank,
                                                          one.last_common->lc)
                                            : std::string()),
        columns);
  const std::size_t moments = std::min(one.order.size(), kMomentsShownMax);
  for (std::size_t at = 0; at < moments; ++at)
    text += moment_lines(one.order[at], at == 0, columns);
  if (one.order.size() > moments)
    text += paragraph("", fmt::format("{} more: see --json", one.order.size() - moments), columns);
  text += waits_text(one.waits, columns);
  text += paragraph("rule", one.rule, columns);
  text += paragraph("look at", one.look_at, columns);
  if (!one.files.empty())
    text +=
        fmt::format("    {}{}{}\n", padded("in", kDiagnosisLabelWidth), visible(one.files.front()),
                    one.files.size() > 1 ? fmt::format(" and {} more", one.files.size() - 1) : "");
  return text;
}

// Further runs with the same kind.
std::string others_text(const Diagnosis& first, const std::vector<Diagnosis>& all) {
  std::string text;
  std::size_t count = 0;
  for (const Diagnosis& one : all) {
    if (&one == &first || one.kind != first.kind || ++count > kOthersMax) continue;
    if (!one.files.empty())
      text += fmt::format("    {}{}{}\n", padded("also in", kDiagnosisLabelWidth),
                          visible(one.files.front()), ranks_text(one.ranks));
  }
  if (count > kOthersMax)
    text +=
        fmt::format("    {}{} more runs\n", padded("", kDiagnosisLabelWidth), count - kOthersMax);
  return text;
}

// What a reader does after reading. The command stands on a line of its own, to be pasted; dumps
// have no clock, and `show` does not read them.
std::string next_text(const Diagnosis& first) {
  if (first.gravity != Gravity::defect || first.files.empty()) return {};
  const bool is_trace = std::any_of(first.order.begin(), first.order.end(),
                                    [](const DiagnosisMoment& moment) { return moment.lc > 0; });
  std::string text = "next  begin with entry 1: what follows may be its consequence\n";
  if (is_trace) text += fmt::format("      zeroproof show {}\n", visible(first.files.back()));
  return text;
}

// Dumps of one format that have equally many collectives, in one line.
std::string grouped_dumps(const DumpReport& report, const Palette& palette) {
  std::map<std::string, std::vector<std::int32_t>> ranks;
  for (std::size_t at = 0; at < report.dumps.size(); ++at)
    ranks[fmt::format("{}: {} collectives", dump_format_name(report.dumps[at].format),
                      report.collectives[at])]
        .push_back(report.dumps[at].rank);
  std::string text;
  for (auto& [words, same] : ranks) {
    std::sort(same.begin(), same.end());
    same.erase(std::unique(same.begin(), same.end()), same.end());
    text += fmt::format("{}  {} each, {}\n", palette.good("read      "), words, rank_words(same));
  }
  return limited_lines(text, kDumpsShown);
}

std::string dump_line(const DumpReport& report, std::size_t at, const Palette& palette) {
  const RankDump& dump = report.dumps[at];
  std::string text = fmt::format("{}  {}  {}, rank {}: {} collectives", palette.good("read      "),
                                 visible(dump.path), dump_format_name(dump.format), dump.rank,
                                 report.collectives[at]);
  if (report.nodes[at] > 0) text += fmt::format(", {} autograd nodes", report.nodes[at]);
  return text + "\n";
}

}  // namespace

std::string_view gravity_name(Gravity gravity) {
  constexpr std::string_view kNames[] = {"defect", "hazard", "note"};
  return kNames[static_cast<std::size_t>(gravity)];
}

std::string diagnosis_text(const std::vector<Diagnosis>& all, std::size_t columns,
                           std::size_t lines_max, const Palette& palette) {
  if (all.empty()) return {};
  std::string text = palette.title("diagnosis") + "\n";
  std::vector<std::string> told;  // kinds: the first of each in full, the others by their files
  std::string headings;           // of entries for which no lines are left
  for (const Diagnosis& one : all) {
    if (std::find(told.begin(), told.end(), one.kind) != told.end()) continue;
    told.push_back(one.kind);
    const std::string entry =
        entry_text(one, told.size(), columns, palette) + others_text(one, all);
    const bool has_room =
        line_count(text) + line_count(entry) + kHeadingsMax + kNextMax <= lines_max;
    if (told.size() == 1 || (told.size() <= kFilesShownMax && headings.empty() && has_room))
      text += entry;
    else
      headings += entry.substr(0, entry.find('\n') + 1);
  }
  return limited_lines(text, lines_max - kHeadingsMax - kNextMax) +
         limited_lines(headings, kHeadingsMax) + limited_lines(next_text(all.front()), kNextMax);
}

std::string dumps_text(const DumpReport& report, const Palette& palette) {
  std::string text;
  if (report.dumps.size() > kDumpsShown)
    text = grouped_dumps(report, palette);
  else
    for (std::size_t at = 0; at < report.dumps.size(); ++at) text += dump_line(report, at, palette);
  std::string faults;
  for (const Error& fault : report.faults)
    faults += fmt::format("{}  {}\n", palette.bad("UNREADABLE"), visible(fault.text));
  text += limited_lines(faults, kDumpsShown);
  if (report.dumps.size() < 2) return text;
  std::string verdicts;
  for (const auto& [name, count] : report.verdicts) verdicts += fmt::format(" {} {}", name, count);
  return text + fmt::format("{} dumps compared:{}\n", report.dumps.size(),
                            verdicts.empty() ? " they share no collective" : verdicts);
}

std::string what_if_text(const std::vector<WhatIfReport>& all, const Palette& palette) {
  std::string text;
  for (const WhatIfReport& report : all) {
    if (!report.is_applicable()) continue;
    text += fmt::format("{} {} under {}\n", palette.title("what if:"), visible(report.path),
                        report.policy);
    for (const std::string& line : report.lines) text += fmt::format("  {}\n", visible(line));
  }
  return text;
}

}  // namespace zeroproof
