#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zeroproof {

// The word as a POSIX shell reads it back; left alone without special characters.
std::string shell_quote(std::string_view word);

// " --set P=2 --set N=8".
std::string setting_words(const std::vector<std::string>& settings);

}  // namespace zeroproof
