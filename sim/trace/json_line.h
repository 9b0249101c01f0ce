#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace zeroproof {

enum class JsonLineKind : std::uint8_t { null, boolean, integer, number, string, array, object };

// "an integer", for messages.
std::string_view json_kind_name(JsonLineKind kind);

// One value of a line. Values lie in document order; the values inside an array or object follow
// it, and `end` is the index after the last of them.
struct JsonLineValue {
  JsonLineKind kind = JsonLineKind::null;
  bool boolean = false;
  std::uint32_t end = 0;
  std::string_view key;      // in an object
  std::string_view text;     // string: decoded; integer, number: as written
  std::int64_t integer = 0;  // integer: fits 64 bits, signed
  double number = 0;         // integer and number: nearest double, infinite when out of range
};

// Bytes that the parser may read, but does not interpret, after the line it is given.
inline constexpr std::size_t kJsonPadding = 64;

// Decodes one line into a flat list that is reused from line to line, so that no memory is
// allocated once the largest line was seen. Every byte of the line is checked, also of parts
// no caller asks for. Not thread-safe.
class JsonLine {
 public:
  JsonLine();
  ~JsonLine();
  JsonLine(JsonLine&&) noexcept;
  JsonLine& operator=(JsonLine&&) noexcept;

  // The values, the object of the line first, or why it is none (no file or line number).
  // kJsonPadding readable bytes must follow `line`. Valid until the next call, as is `line`.
  tl::expected<std::span<const JsonLineValue>, std::string> parse(std::string_view line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zeroproof
