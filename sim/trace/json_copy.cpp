#include "sim/trace/json_copy.h"

#include <algorithm>

namespace zeroproof {

std::size_t append_json_value(std::span<const JsonLineValue> values, std::size_t at,
                              std::string& out) {
  const JsonLineValue& value = values[at];
  switch (value.kind) {
    case JsonLineKind::null:
      out += "null";
      break;
    case JsonLineKind::boolean:
      append_json(value.boolean, out);
      break;
    case JsonLineKind::integer:
    case JsonLineKind::number:
      out += value.text;
      break;
    case JsonLineKind::string:
      append_json_string(value.text, out);
      break;
    case JsonLineKind::array:
    case JsonLineKind::object: {
      const bool is_object = value.kind == JsonLineKind::object;
      out += is_object ? '{' : '[';
      for (std::size_t i = at + 1; i < value.end;) {
        if (i > at + 1) out += ',';
        if (is_object) {
          append_json_string(values[i].key, out);
          out += ':';
        }
        i = append_json_value(values, i, out);
      }
      out += is_object ? '}' : ']';
    }
  }
  return value.end;
}

void copy_members(std::span<const JsonLineValue> values,
                  std::initializer_list<std::string_view> except, JsonObject& to) {
  for (std::size_t i = 1; i < values.size(); i = values[i].end) {
    if (std::find(except.begin(), except.end(), values[i].key) != except.end()) continue;
    append_json_value(values, i, to.key(values[i].key));
  }
}

}  // namespace zeroproof
