#pragma once

#include <string>
#include <string_view>

namespace zeroproof {

// Text for a terminal of so many columns: longer lines are broken at blanks, and go on below their
// last cell, or indented by two. A command to reproduce and a row of four cells or more stay whole.
// Escape sequences take no column.
std::string folded_text(std::string_view text, std::size_t columns);

}  // namespace zeroproof
