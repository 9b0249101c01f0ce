#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace zeroproof::program {

enum class Role : std::uint8_t {
  needed,    // always written, and the first argument of a text
  quoted,    // needed, and no reference: quoted in a text
  optional,  // left out where it has its default
  kind       // a variant: the name of the alternative is the key
};

// One row of a struct's table.
template <class Struct, class Value>
struct Member {
  std::string_view name;
  Value Struct::*pointer;
  std::string_view meaning;  // half a sentence for the reference
  Role role;
};

template <class Struct, class Value>
constexpr Member<Struct, Value> needs(std::string_view name, Value Struct::*pointer,
                                      std::string_view meaning = "") {
  return {name, pointer, meaning, Role::needed};
}
template <class Struct, class Value>
constexpr Member<Struct, Value> quotes(std::string_view name, Value Struct::*pointer,
                                       std::string_view meaning = "") {
  return {name, pointer, meaning, Role::quoted};
}
template <class Struct, class Value>
constexpr Member<Struct, Value> may(std::string_view name, Value Struct::*pointer,
                                    std::string_view meaning = "") {
  return {name, pointer, meaning, Role::optional};
}
template <class Struct, class... Kinds>
constexpr Member<Struct, std::variant<Kinds...>> one_of(std::variant<Kinds...> Struct::*pointer) {
  return {"", pointer, "", Role::kind};
}

// How a struct of the language is read, written, printed and explained. Specialized for each one,
// with `name`, `meaning` and `members`, a tuple of rows.
template <class Struct>
struct Description;

template <class T>
concept Described = requires {
  Description<T>::members;
};

// Stands for any value in an initializer; never converted.
struct AnyValue {
  template <class T>
  operator T() const;  // NOLINT: implicit on purpose
};

template <class Struct, std::size_t... at>
constexpr bool takes_values(std::index_sequence<at...>) {
  return requires {
    Struct{(static_cast<void>(at), AnyValue())...};
  };
}

// Of an aggregate.
template <class Struct, std::size_t count = 0>
constexpr std::size_t member_count() {
  if constexpr (takes_values<Struct>(std::make_index_sequence<count + 1>())) {
    return member_count<Struct, count + 1>();
  } else {
    return count;
  }
}

// Calls visit(row) for each member. A struct with a member that has no row does not compile.
template <Described Struct, class Visit>
constexpr void visit_members(Visit&& visit) {
  constexpr auto& kRows = Description<Struct>::members;
  static_assert(std::tuple_size_v<std::remove_cvref_t<decltype(kRows)>> == member_count<Struct>(),
                "a member of the struct has no row in its Description");
  std::apply([&](const auto&... row) { (visit(row), ...); }, kRows);
}

// The names of a variant's alternatives, in their order.
template <class... Kinds>
constexpr std::array<std::string_view, sizeof...(Kinds)> kind_names(
    const std::variant<Kinds...>* /*type*/) {
  return {Description<Kinds>::name...};
}
template <class Variant>
inline constexpr auto kKindNames = kind_names(static_cast<const Variant*>(nullptr));

}  // namespace zeroproof::program
