#include "props/replay/rank_set.h"

#include <fmt/format.h>

namespace zeroproof {

std::string rank_set(const std::vector<std::int32_t>& ranks, std::size_t ranges_max) {
  std::string text;
  std::size_t ranges = 0;
  for (std::size_t at = 0; at < ranks.size(); ++ranges) {
    if (ranges == ranges_max) return fmt::format("{} and {} more", text, ranks.size() - at);
    std::size_t last = at;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += last == at ? fmt::format("{}", ranks[at])
                       : fmt::format("{}{}{}", ranks[at], last == at + 1 ? ", " : "–", ranks[last]);
    at = last + 1;
  }
  return text;
}

std::string rank_words(const std::vector<std::int32_t>& ranks, std::size_t ranges_max) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", rank_set(ranks, ranges_max));
}

}  // namespace zeroproof
