#include "props/program/program_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>

#include "props/program/config_difference.h"
#include "props/program/enum_words.h"
#include "props/program/json_lines.h"
#include "props/program/program_description.h"

namespace zeroproof::program {
namespace {

using OrderedJson = nlohmann::ordered_json;

template <class T>
bool is_default(const T& value, const T& usual) {
  return value == usual;
}
bool is_default(const ZeroConfig& config, const ZeroConfig& /*usual*/) {
  return config_difference(config) == "{}";
}

OrderedJson written(bool value) {
  return value;
}
OrderedJson written(int value) {
  return value;
}
OrderedJson written(std::int64_t value) {
  return value;
}
OrderedJson written(std::uint32_t value) {
  return value;
}
// JSON has no infinity and no NaN: their names.
OrderedJson written(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(fmt::format("{}", value));
}
OrderedJson written(const std::string& value) {
  return value;
}
OrderedJson written(const ZeroConfig& config) {
  return OrderedJson::parse(config_difference(config));
}
template <class Enum>
requires std::is_enum_v<Enum> OrderedJson written(Enum value) {
  return std::string(enum_word(value));
}
template <Described Struct>
OrderedJson written(const Struct& value);
template <class T>
OrderedJson written(const std::vector<T>& values) {
  OrderedJson list = OrderedJson::array();
  for (const T& value : values) list.push_back(written(value));
  return list;
}
template <class T>
OrderedJson written(const std::optional<T>& value) {
  return value ? written(*value) : OrderedJson();
}

template <class Struct, class Value>
void write_member(const Struct& object, const Member<Struct, Value>& row, OrderedJson& json) {
  static const Struct kUsual{};
  const Value& value = object.*row.pointer;
  if (row.role == Role::optional && is_default(value, kUsual.*row.pointer)) return;
  json[std::string(row.name)] = written(value);
}

template <class Struct, class... Kinds>
void write_member(const Struct& object, const Member<Struct, std::variant<Kinds...>>& row,
                  OrderedJson& json) {
  const auto write = [&]<class Kind>(const Kind& kind) {
    json[std::string(Description<Kind>::name)] = written(kind);
  };
  std::visit(write, object.*row.pointer);
}

template <Described Struct>
OrderedJson written(const Struct& value) {
  OrderedJson json = OrderedJson::object();
  visit_members<Struct>([&](const auto& row) { write_member(value, row, json); });
  return json;
}

}  // namespace

std::string program_json(const Program& program) {
  OrderedJson document = {{"schema", "zeroproof.program/1"}};
  document.update(written(program));
  return json_lines(document.dump());
}

}  // namespace zeroproof::program
