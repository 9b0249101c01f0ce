#pragma once

#include <optional>
#include <string>

namespace zeroproof {

// Whether python3 takes the file for a Python program; it is not run. nullopt: it does. Else what
// it says, in one line. `is_checked` becomes false where there is no python3.
std::optional<std::string> python_complaint(const std::string& path, bool& is_checked);

}  // namespace zeroproof
