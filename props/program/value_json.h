#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "props/program/config_difference.h"
#include "props/program/enum_words.h"
#include "props/program/program_description.h"

// Values of the language as JSON, by the tables of their structs. Members with their default value
// are left out.

namespace zeroproof::program {

template <class T>
bool is_default(const T& value, const T& usual) {
  return value == usual;
}
// The ds_config.json of a configuration: every key of it, and what differs from the default.
nlohmann::json config_json(const ZeroConfig& config);
nlohmann::json config_difference_json(const ZeroConfig& config);

inline bool is_default(const ZeroConfig& config, const ZeroConfig& /*usual*/) {
  return config_difference_json(config).empty();
}

template <class T>
requires std::is_integral_v<T> nlohmann::ordered_json written(T value) {
  return value;
}
// JSON has no infinity and no NaN: their names.
inline nlohmann::ordered_json written(double value) {
  using Json = nlohmann::ordered_json;
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}
inline nlohmann::ordered_json written(const std::string& value) {
  return value;
}
inline nlohmann::ordered_json written(const ZeroConfig& config) {
  return config_difference_json(config);
}
template <class Enum>
requires std::is_enum_v<Enum> nlohmann::ordered_json written(Enum value) {
  return std::string(enum_word(value));
}
template <Described Struct>
nlohmann::ordered_json written(const Struct& value);
template <class T>
nlohmann::ordered_json written(const std::vector<T>& values) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const T& value : values) list.push_back(written(value));
  return list;
}
template <class T>
nlohmann::ordered_json written(const std::optional<T>& value) {
  return value ? written(*value) : nlohmann::ordered_json();
}

template <class Struct, class Value>
bool has_default(const Struct& object, const Member<Struct, Value>& row) {
  static const Struct kUsual{};
  return is_default(object.*row.pointer, kUsual.*row.pointer);
}

template <class Struct, class Value>
void write_member(const Struct& object, const Member<Struct, Value>& row,
                  nlohmann::ordered_json& json) {
  if (row.role == Role::optional && has_default(object, row)) return;
  json[std::string(row.name)] = written(object.*row.pointer);
}

template <class Struct, class... Kinds>
void write_member(const Struct& object, const Member<Struct, std::variant<Kinds...>>& row,
                  nlohmann::ordered_json& json) {
  const auto write = [&]<class Kind>(const Kind& kind) {
    json[std::string(Description<Kind>::name)] = written(kind);
  };
  std::visit(write, object.*row.pointer);
}

template <Described Struct>
nlohmann::ordered_json written(const Struct& value) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  visit_members<Struct>([&](const auto& row) { write_member(value, row, json); });
  return json;
}

}  // namespace zeroproof::program
