#include "props/program/program_schema.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>

#include "props/program/enum_words.h"
#include "props/program/json_lines.h"
#include "props/program/program_description.h"

namespace zeroproof::program {
namespace {

using Schema = nlohmann::ordered_json;

// Names a type, so that an overload can be chosen by it.
template <class T>
struct Of {};

class SchemaWriter {
 public:
  Schema whole() {
    Schema schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                     {"title", "zeroproof.program/1"}};
    Schema program = of_struct<Program>();
    program["properties"]["schema"] = {{"const", "zeroproof.program/1"}};
    program["required"].push_back("schema");
    schema.update(program);
    schema["$defs"] = definitions_;
    return schema;
  }

 private:
  Schema of(Of<bool>) { return {{"type", "boolean"}}; }
  Schema of(Of<std::string>) { return {{"type", "string"}}; }
  Schema of(Of<double>) {
    return {{"oneOf", {{{"type", "number"}}, {{"enum", {"inf", "-inf", "nan"}}}}}};
  }
  Schema of(Of<ZeroConfig>) { return {{"type", "object"}}; }
  Schema of(Of<int>) { return {{"type", "integer"}}; }
  Schema of(Of<std::int64_t>) { return {{"type", "integer"}}; }
  Schema of(Of<std::uint32_t>) {
    constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
    return {{"type", "integer"}, {"minimum", 0}, {"maximum", kMost}};
  }
  template <class Enum>
  requires std::is_enum_v<Enum> Schema of(Of<Enum>) { return {{"enum", kEnumWords<Enum>}}; }
  template <class T>
  Schema of(Of<std::vector<T>>) {
    return {{"type", "array"}, {"items", of(Of<T>())}};
  }
  template <class T>
  Schema of(Of<std::optional<T>>) {
    return of(Of<T>());
  }
  template <Described Struct>
  Schema of(Of<Struct>) {
    const std::string name(Description<Struct>::name);
    if (!definitions_.contains(name)) {
      definitions_[name] = nullptr;  // a struct may contain itself
      definitions_[name] = of_struct<Struct>();
    }
    return {{"$ref", "#/$defs/" + name}};
  }

  template <Described Struct>
  Schema of_struct() {
    Schema schema = {{"description", Description<Struct>::meaning},
                     {"type", "object"},
                     {"properties", Schema::object()},
                     {"required", Schema::array()},
                     {"additionalProperties", false}};
    visit_members<Struct>([&](const auto& row) { add(row, schema); });
    return schema;
  }

  template <class Struct, class Value>
  void add(const Member<Struct, Value>& row, Schema& schema) {
    Schema member = of(Of<Value>());
    if (!row.meaning.empty()) member["description"] = row.meaning;
    if (row.role == Role::optional) add_default(Struct{}.*row.pointer, member);
    schema["properties"][std::string(row.name)] = member;
    if (row.role != Role::optional) schema["required"].push_back(row.name);
  }

  template <class Struct, class... Kinds>
  void add(const Member<Struct, std::variant<Kinds...>>& /*row*/, Schema& schema) {
    const auto add_kind = [&]<class Kind>(Of<Kind> kind) {
      const std::string name(Description<Kind>::name);
      schema["properties"][name] = of(kind);
      schema["oneOf"].push_back({{"required", {name}}});
    };
    (add_kind(Of<Kinds>()), ...);
  }

  // Of what a table can show: numbers and words.
  template <class Value>
  void add_default(const Value& value, Schema& member) {
    if constexpr (std::is_enum_v<Value>) member["default"] = enum_word(value);
    if constexpr (std::is_arithmetic_v<Value>) member["default"] = value;
  }

  Schema definitions_ = Schema::object();
};

}  // namespace

std::string program_schema() {
  return json_lines(SchemaWriter().whole().dump());
}

}  // namespace zeroproof::program
