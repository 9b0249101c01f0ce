#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace zeroproof {

// How many names a sentence bears.
inline constexpr std::size_t kListedNamesMax = 5;

// "a, b, c and 4 more".
std::string listed(const std::vector<std::string>& words, std::size_t shown_max = kListedNamesMax);

}  // namespace zeroproof
