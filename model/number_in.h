#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace zeroproof {

// The whole text as a number; none: it is something else, or too large. Asks no locale.
template <class Number>
std::optional<Number> number_in(std::string_view text, int base = 10) {
  Number number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number, base);
  if (error != std::errc() || end != last) return std::nullopt;
  return number;
}

}  // namespace zeroproof
