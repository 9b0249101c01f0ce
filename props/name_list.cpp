#include "zeroproof/internal/props/name_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zeroproof {

std::string listed(const std::vector<std::string>& words, std::size_t shown_max) {
  if (words.size() <= shown_max) return fmt::format("{}", fmt::join(words, ", "));
  const std::vector<std::string> shown(words.begin(),
                                       words.begin() + static_cast<std::ptrdiff_t>(shown_max));
  return fmt::format("{} and {} more", fmt::join(shown, ", "), words.size() - shown_max);
}

}  // namespace zeroproof
