#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>

#include "engine/config/json_value.h"
#include "model/nearest_name.h"
#include "props/program/enum_words.h"
#include "props/program/program_description.h"
#include "props/program/program_json.h"

namespace zeroproof::program {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSchema = "zeroproof.program/1";

// Leaves the descent; parse_program turns it into a Result.
struct WrongDocument {
  std::string text;  // after the file's name
};

// A value and where it stands.
struct JsonPlace {
  const JsonValue& value;
  std::string pointer;

  JsonPlace below(std::string_view name) const {
    return {*value.find(name), json_pointer(pointer, name)};
  }
  JsonPlace item(std::size_t at) const {
    return {value.values[at], fmt::format("{}/{}", pointer, at)};
  }

  [[noreturn]] void reject(std::string_view what) const {
    throw WrongDocument{fmt::format("{}: {}", pointer.empty() ? "/" : pointer, what)};
  }
  void require(JsonKind kind, std::string_view wanted) const {
    if (value.kind != kind) reject(fmt::format("is {}; give {}", value.described(), wanted));
  }
};

void read(const JsonPlace& at, bool& into) {
  at.require(JsonKind::boolean, "true or false");
  into = at.value.boolean;
}

void read(const JsonPlace& at, std::string& into) {
  at.require(JsonKind::text, "a string");
  into = at.value.text;
}

template <class T>
requires std::is_integral_v<T>
void read(const JsonPlace& at, T& into) {
  at.require(JsonKind::number, "an integer");
  using Limits = std::numeric_limits<T>;
  const auto& integer = at.value.integer;
  if (!integer || !std::in_range<T>(*integer)) {
    at.reject(fmt::format("is {}; give an integer between {} and {}", at.value.described(),
                          Limits::min(), Limits::max()));
  }
  into = static_cast<T>(*integer);
}

void read(const JsonPlace& at, double& into) {
  using Limits = std::numeric_limits<double>;
  constexpr std::pair<std::string_view, double> kNotFinite[] = {
      {"inf", Limits::infinity()}, {"-inf", -Limits::infinity()}, {"nan", Limits::quiet_NaN()}};
  for (const auto& [name, value] : kNotFinite) {
    if (at.value.kind == JsonKind::text && at.value.text == name) {
      into = value;
      return;
    }
  }
  at.require(JsonKind::number, "a number");
  into = at.value.number;
}

template <class Enum>
requires std::is_enum_v<Enum>
void read(const JsonPlace& at, Enum& into) {
  constexpr auto& kWords = kEnumWords<Enum>;
  at.require(JsonKind::text, fmt::format("one of {}", fmt::join(kWords, ", ")));
  const auto found = std::ranges::find(kWords, at.value.text);
  if (found == kWords.end()) {
    at.reject(fmt::format("is \"{}\"; {}", at.value.text, did_you_mean(at.value.text, kWords)));
  }
  into = static_cast<Enum>(found - kWords.begin());
}

Json json_of(const JsonValue& value) {
  switch (value.kind) {
    case JsonKind::null:
      return nullptr;
    case JsonKind::boolean:
      return value.boolean;
    case JsonKind::number:
      return value.integer ? Json(*value.integer) : Json(value.number);
    case JsonKind::text:
      return value.text;
    case JsonKind::list:
    case JsonKind::object:
      break;
  }
  const bool is_list = value.kind == JsonKind::list;
  Json json = is_list ? Json::array() : Json::object();
  for (std::size_t at = 0; at < value.values.size(); ++at) {
    if (is_list) json.push_back(json_of(value.values[at]));
    if (!is_list) json[value.names[at]] = json_of(value.values[at]);
  }
  return json;
}

// The engine's own reader, whose pointers begin at the configuration.
void read(const JsonPlace& at, ZeroConfig& into) {
  at.require(JsonKind::object, "an object");
  auto parsed = parse_ds_config(json_of(at.value).dump(), "");
  if (!parsed) {
    constexpr std::string_view kBefore = ": ";
    throw WrongDocument{at.pointer + parsed.error().text.substr(kBefore.size())};
  }
  into = std::move(parsed->config);
}

template <class T>
void read(const JsonPlace& at, std::vector<T>& into);
template <class T>
void read(const JsonPlace& at, std::optional<T>& into);
template <Described Struct>
void read(const JsonPlace& at, Struct& into);

template <class T>
void read(const JsonPlace& at, std::vector<T>& into) {
  at.require(JsonKind::list, "a list");
  into.clear();  // of its default
  for (std::size_t item = 0; item < at.value.values.size(); ++item) {
    read(at.item(item), into.emplace_back());
  }
}

template <class T>
void read(const JsonPlace& at, std::optional<T>& into) {
  read(at, into.emplace());
}

template <class Struct, class Value>
void read_member(const JsonPlace& at, const Member<Struct, Value>& row, Struct& into) {
  if (at.value.find(row.name) != nullptr) return read(at.below(row.name), into.*row.pointer);
  if (row.role != Role::optional) at.reject(fmt::format("needs \"{}\"", row.name));
}

// The alternative whose name is a key here.
template <class Struct, class... Kinds>
void read_member(const JsonPlace& at, const Member<Struct, std::variant<Kinds...>>& row,
                 Struct& into) {
  constexpr auto& kKinds = kKindNames<std::variant<Kinds...>>;
  const auto is_here = [&](std::string_view name) { return at.value.find(name) != nullptr; };
  const auto count = std::ranges::count_if(kKinds, is_here);
  if (count != 1) {
    at.reject(
        fmt::format("has {} of these keys, and must have one: {}", count, fmt::join(kKinds, ", ")));
  }
  const auto read_kind = [&]<class Kind>(const Kind* /*type*/) {
    constexpr std::string_view kName = Description<Kind>::name;
    if (is_here(kName)) read(at.below(kName), (into.*row.pointer).template emplace<Kind>());
  };
  (read_kind(static_cast<const Kinds*>(nullptr)), ...);
}

template <class Struct, class Value>
void add_keys(const Member<Struct, Value>& row, std::vector<std::string_view>& keys) {
  keys.push_back(row.name);
}
template <class Struct, class... Kinds>
void add_keys(const Member<Struct, std::variant<Kinds...>>& /*row*/,
              std::vector<std::string_view>& keys) {
  constexpr auto& kKinds = kKindNames<std::variant<Kinds...>>;
  keys.insert(keys.end(), kKinds.begin(), kKinds.end());
}

template <Described Struct>
void read(const JsonPlace& at, Struct& into) {
  at.require(JsonKind::object, "an object");
  std::vector<std::string_view> keys;
  visit_members<Struct>([&](const auto& row) { add_keys(row, keys); });
  for (const std::string& name : at.value.names) {
    if (std::ranges::find(keys, name) != keys.end()) continue;
    at.below(name).reject("unknown key; " +
                          (keys.empty() ? "none may stand here" : did_you_mean(name, keys)));
  }
  visit_members<Struct>([&](const auto& row) { read_member(at, row, into); });
}

// The schema's name goes: the rest is the program.
void take_schema(JsonValue& document) {
  const JsonPlace root{document, ""};
  root.require(JsonKind::object, "an object");
  if (document.find("schema") == nullptr)
    root.reject(fmt::format("needs \"schema\": \"{}\"", kSchema));
  const JsonPlace schema = root.below("schema");
  if (schema.value.text != kSchema) {
    schema.reject(
        fmt::format("is {}; this is a reader of \"{}\"", schema.value.described(), kSchema));
  }
  const auto at = std::ranges::find(document.names, "schema") - document.names.begin();
  document.names.erase(document.names.begin() + at);
  document.values.erase(document.values.begin() + at);
}

}  // namespace

Result<Program> parse_program(std::string_view json, std::string_view where) {
  auto document = parse_json(std::string(json), std::string(where));
  if (!document) return tl::unexpected(document.error());
  try {
    take_schema(*document);
    Program program;
    read(JsonPlace{*document, ""}, program);
    return program;
  } catch (const WrongDocument& wrong) {
    return fail(ErrorCode::usage, fmt::format("{}: {}", where, wrong.text));
  }
}

}  // namespace zeroproof::program
