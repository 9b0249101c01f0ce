#include "props/report/folded_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/report/text.h"

namespace zeroproof {
namespace {

constexpr std::size_t kCellMin = 30;  // columns that a last cell needs

// Bytes of an escape sequence that begins here, which take no column; 0: none begins.
std::size_t escape_bytes(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find('m');
  return end == std::string_view::npos ? 0 : end + 1;
}

std::string without_escapes(std::string_view line) {
  std::string plain;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t skipped = escape_bytes(line.substr(at));
    if (skipped == 0) plain += line[at];
    at += std::max<std::size_t>(skipped, 1);
  }
  return plain;
}

// How many cells follow the first one, and the column of the last.
struct Cells {
  int gaps = 0;
  std::size_t last = 0;
};

Cells cells_of(std::string_view line) {
  Cells cells;
  for (std::size_t at = line.find_first_not_of(' '); at < line.size();) {
    const std::size_t gap = line.find("  ", at);
    if (gap == std::string_view::npos) break;
    at = line.find_first_not_of(' ', gap);
    if (at == std::string_view::npos) break;
    ++cells.gaps;
    cells.last = display_width(line.substr(0, at));
  }
  return cells;
}

std::string folded_line(std::string_view line, std::size_t columns, std::size_t indent) {
  std::string out;
  std::size_t begin = 0;
  std::size_t blank = 0;
  std::size_t width = 0;
  for (std::size_t at = 0; at < line.size();) {
    if (const std::size_t skipped = escape_bytes(line.substr(at)); skipped > 0) {
      at += skipped;
      continue;
    }
    const bool begins_letter = (static_cast<unsigned char>(line[at]) & 0xC0U) != 0x80U;
    if (line[at] == ' ' && width > indent) blank = at;
    width += begins_letter ? 1 : 0;
    ++at;
    if (width <= columns || blank == 0) continue;
    out += fmt::format("{}\n{}", line.substr(begin, blank - begin), std::string(indent, ' '));
    begin = blank + 1;
    at = begin;
    blank = 0;
    width = indent;
  }
  return out + std::string(line.substr(begin)) + "\n";
}

std::string folded_or_whole(std::string_view line, std::size_t columns) {
  constexpr int kGapsOfTable = 3;
  const std::string plain = without_escapes(line);
  const Cells cells = cells_of(plain);
  if (cells.gaps >= kGapsOfTable || line.starts_with("reproduce: "))
    return std::string(line) + "\n";
  const std::size_t begin = std::min(plain.find_first_not_of(' '), plain.size());
  const bool hangs = cells.gaps > 0 && cells.last + kCellMin <= columns;
  return folded_line(line, columns, hangs ? cells.last : begin + 2);
}

}  // namespace

std::string folded_text(std::string_view text, std::size_t columns) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    out += folded_or_whole(text.substr(begin, end - begin), columns);
    begin = end + 1;
  }
  return out;
}

}  // namespace zeroproof
