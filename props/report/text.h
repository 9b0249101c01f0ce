#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof {

// Columns that UTF-8 text takes, one a code point.
std::size_t display_width(std::string_view text);

// The text with blanks added up to `width` columns; longer text is left as it is.
std::string padded(std::string_view text, std::size_t width);

// At most `width` columns; "..." replaces what does not fit.
std::string elided(std::string_view text, std::size_t width);

// Control characters as \xNN: names come from files, and must not move the cursor.
std::string visible(std::string_view text);

// Lines of at most `width` columns, broken at blanks where there are any.
std::vector<std::string> wrapped_lines(std::string_view text, std::size_t width);

// The first `lines_max` lines; where lines are left out, the last of them says how many and where
// they are: "... 37 more lines: see --json".
std::string limited_lines(const std::string& text, std::size_t lines_max);

// How many lines `text` has.
std::size_t line_count(std::string_view text);

// "1 finding", "3 findings".
std::string counted(std::uint64_t count, std::string_view what);

// "999", "12.4k", "120k", "3.1M", "50G".
std::string short_count(std::uint64_t count);

// "01:12", "1:02:03"; whole seconds, rounded down.
std::string clock_text(std::int64_t seconds);

}  // namespace zeroproof
