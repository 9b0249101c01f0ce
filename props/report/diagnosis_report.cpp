#include "props/report/diagnosis_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "props/report/text.h"

namespace zeroproof {
namespace {

constexpr std::size_t kLabelWidth = 10;
constexpr std::size_t kWhereWidth = 16;
constexpr std::size_t kOthersMax = 3;
constexpr std::size_t kShownMax = 12;  // entries of the text; the JSON has all

std::string ranks_text(const std::vector<std::int32_t>& ranks) {
  if (ranks.empty()) return {};
  if (ranks.size() == 1) return fmt::format(" on rank {}", ranks.front());
  return fmt::format(" on ranks {}", fmt::join(ranks, ", "));
}

std::string paragraph(std::string_view label, std::string_view text, std::size_t columns) {
  const std::size_t indent = 4 + kLabelWidth;
  const std::size_t width = columns > indent + 20 ? columns - indent : 20;
  std::string out;
  for (const std::string& line : wrapped_lines(visible(text), width)) {
    out += fmt::format("    {}{}\n", padded(out.empty() ? label : "", kLabelWidth), line);
  }
  return out;
}

// The text of a moment hangs below its clock.
std::string moment_lines(const DiagnosisMoment& moment, bool is_first, std::size_t columns) {
  const std::string where = moment.lc > 0 ? fmt::format("rank {} lc {}", moment.rank, moment.lc)
                                          : fmt::format("rank {}", moment.rank);
  constexpr std::size_t kIndent = 4 + kLabelWidth + 3 + kWhereWidth;
  const std::size_t width = columns > kIndent + 30 ? columns - kIndent : 30;
  std::string text;
  for (const std::string& line : wrapped_lines(visible(moment.text), width)) {
    const bool is_begin = text.empty();
    text += fmt::format("    {}{} {}{}\n", padded(is_first && is_begin ? "order" : "", kLabelWidth),
                        moment.is_bad && is_begin ? ">>" : "  ",
                        padded(is_begin ? where : "", kWhereWidth), line);
  }
  return text;
}

std::string gravity_word(Gravity gravity, const Palette& palette) {
  const std::string word(gravity_name(gravity));
  if (gravity == Gravity::defect) return palette.bad(word);
  return gravity == Gravity::hazard ? palette.notice(word) : word;
}

std::string entry_text(const Diagnosis& one, std::size_t number, std::size_t columns,
                       const Palette& palette) {
  std::string text = fmt::format("  {}. {} {}{}\n", number, gravity_word(one.gravity, palette),
                                 palette.title(one.kind), ranks_text(one.ranks));
  text += paragraph("what", one.what, columns);
  if (!one.parameter.empty()) text += paragraph("parameter", one.parameter, columns);
  if (one.last_common)
    text += paragraph(
        "in common",
        fmt::format("the ranks agree up to {}{}", one.last_common->text,
                    one.last_common->lc > 0 ? fmt::format(" (rank {} lc {})", one.last_common->rank,
                                                          one.last_common->lc)
                                            : std::string()),
        columns);
  for (std::size_t at = 0; at < one.order.size(); ++at)
    text += moment_lines(one.order[at], at == 0, columns);
  for (const DiagnosisWait& wait : one.waits)
    text += paragraph(
        "waits",
        fmt::format("rank {} waits{} in {}", wait.rank,
                    wait.for_ranks.empty()
                        ? std::string()
                        : fmt::format(" for rank{} {}", wait.for_ranks.size() > 1 ? "s" : "",
                                      fmt::join(wait.for_ranks, ", ")),
                    wait.text),
        columns);
  text += paragraph("rule", one.rule, columns);
  text += paragraph("look at", one.look_at, columns);
  if (!one.files.empty())
    text +=
        fmt::format("    {}{}{}\n", padded("in", kLabelWidth), visible(one.files.front()),
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
      text += fmt::format("    {}{}{}\n", padded("also in", kLabelWidth),
                          visible(one.files.front()), ranks_text(one.ranks));
  }
  if (count > kOthersMax)
    text += fmt::format("    {}{} more runs\n", padded("", kLabelWidth), count - kOthersMax);
  return text;
}

}  // namespace

std::string_view gravity_name(Gravity gravity) {
  constexpr std::string_view kNames[] = {"defect", "hazard", "note"};
  return kNames[static_cast<std::size_t>(gravity)];
}

std::string diagnosis_text(const std::vector<Diagnosis>& all, std::size_t columns,
                           const Palette& palette) {
  if (all.empty()) return {};
  std::string text = palette.title("diagnosis") + "\n";
  std::vector<std::string> told;  // kinds: the first of each in full, the others by their files
  std::size_t number = 0;
  for (const Diagnosis& one : all) {
    if (std::find(told.begin(), told.end(), one.kind) != told.end()) continue;
    told.push_back(one.kind);
    if (++number > kShownMax) continue;
    text += entry_text(one, number, columns, palette);
    text += others_text(one, all);
  }
  if (number > kShownMax) text += fmt::format("  {} more: --json has all\n", number - kShownMax);
  return text;
}

std::string dumps_text(const DumpReport& report, const Palette& palette) {
  std::string text;
  for (std::size_t at = 0; at < report.dumps.size(); ++at) {
    const RankDump& dump = report.dumps[at];
    text += fmt::format("{}  {}  {}, rank {}: {} collectives", palette.good("read      "),
                        visible(dump.path), dump_format_name(dump.format), dump.rank,
                        report.collectives[at]);
    if (report.nodes[at] > 0) text += fmt::format(", {} autograd nodes", report.nodes[at]);
    text += "\n";
  }
  for (const Error& fault : report.faults)
    text += fmt::format("{}  {}\n", palette.bad("UNREADABLE"), visible(fault.text));
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
