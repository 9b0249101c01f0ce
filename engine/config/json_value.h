#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/model/result.h"

namespace zeroproof {

enum class JsonKind : std::uint8_t { null, boolean, number, text, list, object };

// One value of a JSON document, its members in the document's order and each name once.
struct JsonValue {
  JsonKind kind = JsonKind::null;
  bool boolean = false;
  double number = 0.0;
  std::optional<std::int64_t> integer;  // a number that is written as one, or equals one
  std::string text;
  std::vector<std::string> names;  // of members
  std::vector<JsonValue> values;   // of members, or items of a list

  const JsonValue* find(std::string_view name) const;
  // For a message: one line, at most 60 bytes.
  std::string described() const;
};

// `name` below `pointer`, escaped as RFC 6901 says, and without control characters.
std::string json_pointer(std::string_view pointer, std::string_view name);

// A document of at most 64 levels in JSON, else in Hjson. The error says the line and column, or
// the pointer of a member that is there twice.
Result<JsonValue> parse_json(const std::string& text, const std::string& source);

}  // namespace zeroproof
