#include "props/cli/help_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/report/text.h"

namespace zeroproof {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kTextColumn = 28;  // "  --find-unused-parameters" and a gap

// The text begins on a line of its own where the name leaves no gap before its column.
std::string row_text(const HelpRow& row) {
  const bool is_wide = 2 + display_width(row.name) + 2 > kTextColumn;
  std::string text = is_wide ? fmt::format("  {}\n", row.name) : "";
  std::string name = is_wide ? "" : "  " + row.name;
  for (const std::string& line : wrapped_lines(row.text, kColumns - kTextColumn)) {
    text += padded(name, kTextColumn) + line + "\n";
    name.clear();
  }
  return text;
}

}  // namespace

HelpGroup& HelpPage::group(const std::string& heading) {
  const auto at = std::ranges::find(groups, heading, &HelpGroup::heading);
  return at == groups.end() ? groups.emplace_back(HelpGroup{heading, {}}) : *at;
}

std::string help_text(const HelpPage& page) {
  std::string text = fmt::format("usage: {}\n\n", page.usage);
  for (const std::string& line : wrapped_lines(page.summary, kColumns)) text += line + "\n";
  for (const HelpGroup& group : page.groups) {
    if (group.rows.empty()) continue;
    text += fmt::format("\n{}:\n", group.heading);
    for (const HelpRow& row : group.rows) text += row_text(row);
  }
  return text + fmt::format("\nexamples:\n{}", page.examples);
}

}  // namespace zeroproof
