#include "sim/trace/parse_result.h"

#include <fmt/format.h>

namespace zeroproof {

std::string printable(std::string_view text) {
  constexpr std::size_t kMaxBytes = 60;
  std::string out;
  for (const char c : text.substr(0, kMaxBytes)) {
    const bool is_plain = c >= ' ' && c <= '~';
    out += is_plain ? c : '?';
  }
  return text.size() > kMaxBytes ? out + "..." : out;
}

std::string describe(const JsonLineValue& value) {
  switch (value.kind) {
    case JsonLineKind::string:
      return fmt::format("\"{}\"", printable(value.text));
    case JsonLineKind::integer:
    case JsonLineKind::number:
      return printable(value.text);
    case JsonLineKind::boolean:
      return value.boolean ? "true" : "false";
    default:
      return std::string(json_kind_name(value.kind));
  }
}

}  // namespace zeroproof
