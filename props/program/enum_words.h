#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace zeroproof::program {

// The words of an enum in documents and texts are the identifiers of its values, which count from
// 0. The compiler names a value in the name of a function that it is an argument of.
template <auto value>
constexpr std::string_view enumerator() {
  constexpr std::string_view kBefore = "value = ";
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find(kBefore) + kBefore.size());
  text = text.substr(0, text.find_first_of(";]"));
  if (text.front() == '(') return {};  // "(Mode)7": no value of the enum
  return text.substr(text.rfind(':') + 1);
}

template <class Enum, std::size_t at = 0>
constexpr std::size_t enumerator_count() {
  if constexpr (enumerator<static_cast<Enum>(at)>().empty()) {
    return at;
  } else {
    return enumerator_count<Enum, at + 1>();
  }
}

template <class Enum, std::size_t... at>
constexpr auto words_at(std::index_sequence<at...>) {
  return std::array<std::string_view, sizeof...(at)>{enumerator<static_cast<Enum>(at)>()...};
}

// In the order of the values.
template <class Enum>
inline constexpr auto kEnumWords =
    words_at<Enum>(std::make_index_sequence<enumerator_count<Enum>()>());

template <class Enum>
constexpr std::string_view enum_word(Enum value) {
  return kEnumWords<Enum>[static_cast<std::size_t>(value)];
}

}  // namespace zeroproof::program
