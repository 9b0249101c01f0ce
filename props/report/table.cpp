#include "props/report/table.h"

#include <algorithm>

#include "props/report/text.h"

namespace zeroproof {

std::string table_text(std::span<const std::vector<std::string>> rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += "  ";
      text += i + 1 == row.size() ? row[i] : padded(row[i], widths[i]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace zeroproof
