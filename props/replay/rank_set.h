#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zeroproof {

// "0–16, 18–1023": ascending ranks as ranges. After `ranges_max` ranges the remaining ranks are
// only counted: "0, 2, 4 and 509 more".
std::string rank_set(const std::vector<std::int32_t>& ranks, std::size_t ranges_max = 8);

// "rank 3", "ranks 0–16, 18–1023".
std::string rank_words(const std::vector<std::int32_t>& ranks, std::size_t ranges_max = 8);

}  // namespace zeroproof
