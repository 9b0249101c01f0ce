#include <fmt/format.h>

#include "props/report/verify_parts.h"
#include "props/report/verify_report.h"

namespace zeroproof {
namespace {

std::string part_text(const VerifyPart& part, const Palette& palette) {
  const std::string verdict = fmt::format("{:9}", part.verdict);
  std::string text =
      fmt::format("{}  {:9} {}\n", part.is_good() ? palette.good(verdict) : palette.bad(verdict),
                  part.name, part.text);
  for (const VerifyFailure& failure : part.failures)
    text += fmt::format("    {} {}\n", palette.bad(failure.word), failure.text);
  return text;
}

std::string parts_text(const VerifyReport& report, const Palette& palette) {
  std::string text;
  for (const VerifyPart& part : verify_parts(report)) text += part_text(part, palette);
  return text;
}

std::string verdict_line(const VerifyReport& report, const Palette& palette) {
  if (report.is_interrupted) return palette.bad("INTERRUPTED: what was done is above") + "\n";
  if (!report.has_held()) return palette.bad("FALSIFIED") + "\n";
  return palette.good("HELD") + "\n";
}

}  // namespace

std::string verify_text(const VerifyReport& report, const PageStyle& style) {
  std::string text = parts_text(report, style.palette);
  if (!report.upstream.empty() && !report.upstream.front().empty()) {
    text += "\n" + explore_table(report.upstream.front(), style);
  }
  return text + "\n" + verdict_line(report, style.palette);
}

std::string verify_markdown(const VerifyReport& report) {
  std::string page =
      fmt::format("# zeroproof verify\n\nseed {}\n\n```\n{}\n{}```\n", report.options.seed,
                  parts_text(report, {}), verdict_line(report, {}));
  for (const ExplorationTable& table : report.upstream) {
    if (!table.empty()) page += fmt::format("\n```\n{}```\n", explore_table(table, {}));
  }
  return page;
}

}  // namespace zeroproof
