#include "props/mark.h"

#include <charconv>

namespace zeroproof {

std::optional<double> mark_number(std::string_view label, std::string_view word) {
  if (label.size() <= word.size() + 1 || !label.starts_with(word) || label[word.size()] != ':')
    return std::nullopt;
  const std::string_view digits = label.substr(word.size() + 1);
  double number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  return number;
}

}  // namespace zeroproof
