#pragma once

#include <string>
#include <string_view>

namespace zeroproof {

// The word as a POSIX shell reads it back; left alone without special characters.
std::string shell_quote(std::string_view word);

}  // namespace zeroproof
