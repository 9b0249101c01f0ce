#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "props/program/enum_words.h"
#include "props/program/program_description.h"

// Values of the language as Python-like text, by the tables of their structs.

namespace zeroproof::program {

// "own_weight": OwnWeight.
std::string class_name(std::string_view name);

inline std::string shown(bool value) {
  return value ? "True" : "False";
}
template <class T>
requires std::is_arithmetic_v<T> std::string shown(T value) {
  return fmt::format("{}", value);
}
// A reference; none: the undefined tensor.
inline std::string shown(const std::string& name) {
  return name.empty() ? "None" : name;
}
template <class Enum>
requires std::is_enum_v<Enum> std::string shown(Enum value) {
  return fmt::format("\"{}\"", enum_word(value));
}
std::string shown(const ModuleList& modules);  // Sequential(l0=Linear(1, 2))
template <Described Struct>
std::string shown(const Struct& value);
template <class T>
std::string shown(const std::vector<T>& values) {
  std::vector<std::string> texts;
  for (const T& value : values) texts.push_back(shown(value));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}
template <class T>
std::string shown(const std::optional<T>& value) {
  return value ? shown(*value) : "None";
}

// Modules as keyword arguments: l0=Linear(1, 2).
std::vector<std::string> module_arguments(const ModuleList& modules);

// The arguments of a call that makes a struct: positional ones first. Not among them are the member
// `besides` and what stands before the call: engine.name(arguments), as = …
class Arguments {
 public:
  template <class Struct>
  static std::string of(const Struct& value, std::string_view besides = "") {
    Arguments arguments(besides);
    visit_members<Struct>([&](const auto& row) { arguments.add(value, row); });
    arguments.positional_.insert(arguments.positional_.end(), arguments.keywords_.begin(),
                                 arguments.keywords_.end());
    return fmt::format("{}", fmt::join(arguments.positional_, ", "));
  }

 private:
  explicit Arguments(std::string_view besides)
      : before_the_call_{"engine", "as", "name", besides} {}

  template <class Struct, class Value>
  void add(const Struct& object, const Member<Struct, Value>& row) {
    if (std::ranges::find(before_the_call_, row.name) != before_the_call_.end()) return;
    add_value(object.*row.pointer, Struct{}.*row.pointer, row.name, row.role);
  }
  template <class Value>
  void add_value(const Value& value, const Value& usual, std::string_view name, Role role) {
    if (role == Role::needed) positional_.push_back(shown(value));
    if (role == Role::quoted) positional_.push_back(fmt::format("\"{}\"", shown(value)));
    if (role == Role::optional && !(value == usual))
      keywords_.push_back(fmt::format("{}={}", name, shown(value)));
  }
  void add_value(const ModuleList& value, const ModuleList&, std::string_view, Role) {
    for (std::string& argument : module_arguments(value))
      positional_.push_back(std::move(argument));
  }
  // Lines of their own below the call.
  void add_value(const Body&, const Body&, std::string_view, Role) {}
  void add_value(const std::vector<Hook>&, const std::vector<Hook>&, std::string_view, Role) {}

  std::array<std::string_view, 4> before_the_call_;
  std::vector<std::string> positional_;
  std::vector<std::string> keywords_;
};

template <Described Struct>
std::string shown(const Struct& value) {
  return fmt::format("{}({})", class_name(Description<Struct>::name), Arguments::of(value));
}

}  // namespace zeroproof::program
