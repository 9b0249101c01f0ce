#include "props/report/annotations.h"

#include <fmt/format.h>

#include "props/report/text.h"

namespace zeroproof {
namespace {

// As the runner decodes it. Properties end at commas and colons, too.
std::string escaped(std::string_view text, bool is_property) {
  std::string out;
  for (const char c : text) {
    const bool is_special =
        c == '%' || c == '\r' || c == '\n' || (is_property && (c == ':' || c == ','));
    out += is_special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

std::string title_of(const LocatedFinding& finding) {
  return finding.number.empty() ? finding.rule : fmt::format("{} {}", finding.number, finding.rule);
}

// A cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : visible(text)) {
    if (c == '<') out += "&lt;";
    if (c == '|' || c == '`' || c == '*' || c == '_') out += '\\';
    if (c != '<') out += c;
  }
  return out;
}

}  // namespace

std::string github_annotations(const LocatedFindings& findings) {
  std::string lines;
  for (const LocatedFinding& finding : findings) {
    lines += finding.level == FindingLevel::error ? "::error " : "::warning ";
    if (!finding.file.empty()) {
      lines += fmt::format("file={},line={},", escaped(finding.file, true),
                           finding.line == 0 ? 1 : finding.line);
    }
    std::string text = visible(finding.text);
    if (!finding.subject.empty()) text = fmt::format("{}: {}", visible(finding.subject), text);
    if (!finding.reproduce.empty())
      text += fmt::format("\nreproduce: zeroproof {}", finding.reproduce);
    lines += fmt::format("title={}::{}\n", escaped(title_of(finding), true), escaped(text, false));
  }
  return lines;
}

std::string github_summary(std::string_view run, const LocatedFindings& findings) {
  std::string page = fmt::format("### {}\n\n", run);
  if (findings.empty()) return page + "No rule is broken.\n";
  page += "| rule | where | what |\n|---|---|---|\n";
  for (const LocatedFinding& finding : findings) {
    std::string where = finding.subject.empty() ? finding.file : finding.subject;
    if (finding.lc > 0) where += fmt::format(" lc {}", finding.lc);
    page +=
        fmt::format("| {} | {} | {} |\n", cell(title_of(finding)), cell(where), cell(finding.text));
  }
  return page;
}

}  // namespace zeroproof
