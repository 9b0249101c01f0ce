#include "props/report/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace zeroproof {
namespace {

bool starts_code_point(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

// The longest prefix of at most `width` columns.
std::string_view prefix(std::string_view text, std::size_t width) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (starts_code_point(text[i]) && columns++ == width) return text.substr(0, i);
  }
  return text;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_code_point));
}

std::string padded(std::string_view text, std::size_t width) {
  std::string result(text);
  result.append(width - std::min(width, display_width(text)), ' ');
  return result;
}

std::string elided(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width <= 3) return std::string(width, '.');
  return std::string(prefix(text, width - 3)) + "...";
}

std::string visible(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown.push_back(c);
    }
  }
  return shown;
}

std::vector<std::string> wrapped_lines(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (display_width(text) > width) {
    std::string_view line = prefix(text, std::max<std::size_t>(width, 1));
    const std::size_t blank = text.substr(0, line.size() + 1).rfind(' ');
    const bool has_blank = blank != std::string_view::npos && blank > 0;
    if (has_blank) line = text.substr(0, blank);
    lines.emplace_back(line);
    text.remove_prefix(line.size() + (has_blank ? 1 : 0));
  }
  lines.emplace_back(text);
  return lines;
}

std::size_t line_count(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::string limited_lines(const std::string& text, std::size_t lines_max) {
  const std::size_t lines = line_count(text);
  if (lines <= lines_max) return text;
  std::size_t end = 0;
  for (std::size_t line = 0; line + 1 < lines_max; ++line) end = text.find('\n', end) + 1;
  return text.substr(0, end) +
         fmt::format("... {} more lines: see --json\n", lines - lines_max + 1);
}

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string short_count(std::uint64_t count) {
  if (count < 1000) return fmt::to_string(count);
  static constexpr std::string_view kUnits = "kMGTPE";
  std::uint64_t tenths = count / 100;  // of the unit, rounded down
  std::size_t unit = 0;
  while (tenths >= 10'000) {
    tenths /= 1000;
    ++unit;
  }
  if (tenths >= 1000 || tenths % 10 == 0) return fmt::format("{}{}", tenths / 10, kUnits[unit]);
  return fmt::format("{}.{}{}", tenths / 10, tenths % 10, kUnits[unit]);
}

std::string clock_text(std::int64_t seconds) {
  seconds = std::max<std::int64_t>(seconds, 0);
  if (seconds < 3600) return fmt::format("{:02}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

}  // namespace zeroproof
