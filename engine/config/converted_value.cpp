#include "engine/config/converted_value.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

namespace zeroproof {
namespace {

constexpr std::string_view kOn[] = {"1", "on", "t", "true", "y", "yes"};
constexpr std::string_view kFalseWords[] = {"0", "off", "f", "false", "n", "no"};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// The whole text, or no value.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  Number number{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (text.empty() || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

bool has(const std::string_view (&words)[6], std::string_view word) {
  return std::ranges::find(words, word) != std::end(words);
}

}  // namespace

std::optional<bool> converted_switch(const JsonValue& value) {
  if (value.integer == 0) return false;
  if (value.integer == 1) return true;
  if (value.kind != JsonKind::text) return std::nullopt;
  std::string word = value.text;
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (has(kOn, word)) return true;
  return has(kFalseWords, word) ? std::optional(false) : std::nullopt;
}

std::optional<std::int64_t> converted_integer(const JsonValue& value) {
  return value.kind == JsonKind::text ? number_in<std::int64_t>(value.text) : std::nullopt;
}

std::optional<double> converted_number(const JsonValue& value) {
  if (value.kind != JsonKind::text) return std::nullopt;
  const std::optional<double> number = number_in<double>(value.text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

}  // namespace zeroproof
