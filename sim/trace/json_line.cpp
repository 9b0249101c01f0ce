#include "sim/trace/json_line.h"

#include <fmt/format.h>
// Without the assertions simdjson makes about its caller: the fuzzer runs with them.
#if !defined(NDEBUG) && !defined(ZP_SIMDJSON_CHECKS)
#define NDEBUG  // NOLINT(readability-identifier-naming): the name of the C library
#endif
#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "sim/trace/json_number.h"

namespace zeroproof {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr int kMaxDepth = 128;

// Column (from 1) and the next bytes, in printable form.
std::string place_of(std::string_view line, std::size_t column) {
  std::string near;
  for (const char c : line.substr(column, 12)) near += (c >= ' ' && c <= '~') ? c : '?';
  if (near.empty()) return fmt::format("at its end (column {})", column + 1);
  return fmt::format("at column {} near \"{}\"", column + 1, near);
}

// A bit in every byte of `bytes` that equals `c`; the lowest one is exact.
std::uint64_t marks_equal(std::uint64_t bytes, char c) {
  constexpr std::uint64_t kLow = 0x0101010101010101;
  static_assert(std::endian::native == std::endian::little);
  const std::uint64_t zeros = bytes ^ (kLow * static_cast<unsigned char>(c));
  return (zeros - kLow) & ~zeros & (kLow << 7);
}

// The literal that other JSON writers use for numbers JSON does not have.
bool is_special_number(std::string_view rest) {
  if (rest.starts_with('-')) rest.remove_prefix(1);
  return rest.starts_with("NaN") || rest.starts_with("nan") || rest.starts_with("Inf") ||
         rest.starts_with("inf");
}

const char* hint_for(simdjson::error_code error) {
  switch (error) {
    case simdjson::UTF8_ERROR:
      return "invalid UTF-8";
    case simdjson::STRING_ERROR:
      return "bad escape or lone surrogate in a string";
    case simdjson::UNESCAPED_CHARS:
      return "control character in a string";
    case simdjson::UNCLOSED_STRING:
      return "string without its closing quote";
    case simdjson::EMPTY:
      return "empty line";
    case simdjson::NUMBER_ERROR:
      return "bad number";
    case simdjson::MEMALLOC:
      return "out of memory";
    case simdjson::CAPACITY:
      return "line too long";
    default:
      return "syntax error";
  }
}

}  // namespace

std::string_view json_kind_name(JsonLineKind kind) {
  static constexpr std::string_view kNames[] = {"null",     "a boolean", "an integer", "a number",
                                                "a string", "an array",  "an object"};
  return kNames[static_cast<std::size_t>(kind)];
}

struct JsonLine::State {
  ondemand::parser parser;
  std::vector<JsonLineValue> values;
  std::string_view line;
  bool has_escapes = false;

  simdjson::error_code grow_to(std::size_t bytes);
  bool find_plain(const char* begin, std::string_view& out) const;
  simdjson::error_code add(ondemand::value value, std::string_view key, int depth);
  simdjson::error_code add_scalar(ondemand::value& value, ondemand::json_type type,
                                  JsonLineValue& out);
  simdjson::error_code add_members(ondemand::object& object, int depth);
  simdjson::error_code add_elements(ondemand::array& array, int depth);
  static simdjson::error_code set_number(ondemand::value& value, JsonLineValue& out);
  std::string explain(simdjson::error_code error, const char* at) const;
};

// The parser would otherwise reallocate for every line longer than all before.
simdjson::error_code JsonLine::State::grow_to(std::size_t bytes) {
  if (bytes <= parser.capacity()) return simdjson::SUCCESS;
  return parser.allocate(std::bit_ceil(std::max<std::size_t>(bytes, 4096)), kMaxDepth + 2);
}

// In a line without escapes every string is its own decoded form and needs no copy.
bool JsonLine::State::find_plain(const char* begin, std::string_view& out) const {
  if (has_escapes) return false;
  for (const char* at = begin; at < line.end(); at += 8) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, at, 8);  // may read into the padding
    const std::uint64_t quotes = marks_equal(bytes, '"');
    if (quotes == 0) continue;
    const char* quote = at + std::countr_zero(quotes) / 8;
    if (quote >= line.end()) return false;
    out = std::string_view(begin, static_cast<std::size_t>(quote - begin));
    return true;
  }
  return false;
}

// Not simdjson's own number reading: in 3.0 it gives a wrong double, and no error, for numbers of
// more than 19 digits.
simdjson::error_code JsonLine::State::set_number(ondemand::value& value, JsonLineValue& out) {
  std::string_view text = value.raw_json_token();
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return read_json_number(text, out) ? simdjson::SUCCESS : simdjson::NUMBER_ERROR;
}

simdjson::error_code JsonLine::State::add_scalar(ondemand::value& value, ondemand::json_type type,
                                                 JsonLineValue& out) {
  switch (type) {
    case ondemand::json_type::string: {
      out.kind = JsonLineKind::string;
      ondemand::raw_json_string raw;
      if (!find_plain(value.raw_json_token().data() + 1, out.text)) {
        return value.get_string().get(out.text);
      }
      return value.get_raw_json_string().get(raw);
    }
    case ondemand::json_type::number:
      return set_number(value, out);
    case ondemand::json_type::boolean:
      out.kind = JsonLineKind::boolean;
      return value.get_bool().get(out.boolean);
    default: {
      bool is_null = false;
      const auto error = value.is_null().get(is_null);
      return error || is_null ? error : simdjson::N_ATOM_ERROR;
    }
  }
}

simdjson::error_code JsonLine::State::add(ondemand::value value, std::string_view key, int depth) {
  if (depth > kMaxDepth) return simdjson::DEPTH_ERROR;
  ondemand::json_type type{};
  if (const auto error = value.type().get(type)) return error;
  const std::size_t index = values.size();
  JsonLineValue& out = values.emplace_back();
  out.key = key;
  simdjson::error_code error = simdjson::SUCCESS;
  if (type == ondemand::json_type::object) {
    out.kind = JsonLineKind::object;
    ondemand::object object;
    error = value.get_object().get(object);
    if (!error) error = add_members(object, depth);
  } else if (type == ondemand::json_type::array) {
    out.kind = JsonLineKind::array;
    ondemand::array array;
    error = value.get_array().get(array);
    if (!error) error = add_elements(array, depth);
  } else {
    error = add_scalar(value, type, out);
  }
  values[index].end = static_cast<std::uint32_t>(values.size());
  return error;
}

simdjson::error_code JsonLine::State::add_members(ondemand::object& object, int depth) {
  for (auto member : object) {
    ondemand::field field;
    if (const auto error = std::move(member).get(field)) return error;
    std::string_view key;
    if (!find_plain(field.key().raw(), key)) {
      if (const auto error = field.unescaped_key().get(key)) return error;
    }
    if (const auto error = add(field.value(), key, depth + 1)) return error;
  }
  return simdjson::SUCCESS;
}

simdjson::error_code JsonLine::State::add_elements(ondemand::array& array, int depth) {
  for (auto element : array) {
    ondemand::value value;
    // NOLINTNEXTLINE(performance-move-const-arg): get() is of an rvalue
    if (const auto error = std::move(element).get(value)) return error;
    if (const auto error = add(value, {}, depth + 1)) return error;
  }
  return simdjson::SUCCESS;
}

// `at` is null when the place is not known.
std::string JsonLine::State::explain(simdjson::error_code error, const char* at) const {
  if (error == simdjson::DEPTH_ERROR) {
    return fmt::format("nested deeper than {} levels; flatten the value", kMaxDepth);
  }
  if (at == nullptr)
    return fmt::format("malformed JSON: {}; repair or drop the line", hint_for(error));
  const auto column =
      static_cast<std::size_t>(std::clamp(at, line.begin(), line.end()) - line.begin());
  const std::string place = place_of(line, column);
  if (is_special_number(line.substr(column))) {
    return fmt::format(
        "malformed JSON {}: JSON has no NaN or infinity; write \"nan\", \"inf\" "
        "or \"-inf\" as a string",
        place);
  }
  return fmt::format("malformed JSON {}: {}; repair or drop the line", place, hint_for(error));
}

JsonLine::JsonLine() : state_(std::make_unique<State>()) {}
JsonLine::~JsonLine() = default;
JsonLine::JsonLine(JsonLine&&) noexcept = default;
JsonLine& JsonLine::operator=(JsonLine&&) noexcept = default;

tl::expected<std::span<const JsonLineValue>, std::string> JsonLine::parse(std::string_view line) {
  State& s = *state_;
  s.line = line;
  s.has_escapes = line.find('\\') != std::string_view::npos;
  s.values.clear();
  ondemand::document document;
  auto error = s.grow_to(line.size());
  if (!error) {
    error = s.parser.iterate(line.data(), line.size(), line.size() + kJsonPadding).get(document);
  }
  if (error) return tl::unexpected(s.explain(error, nullptr));

  ondemand::object object;
  error = document.get_object().get(object);
  if (error == simdjson::INCORRECT_TYPE) {
    return tl::unexpected(std::string("not a JSON object; each line of a trace is one"));
  }
  s.values.emplace_back().kind = JsonLineKind::object;
  if (!error) error = s.add_members(object, 1);
  const char* at = nullptr;
  const bool is_at_end = document.current_location().get(at) != simdjson::SUCCESS;
  if (!error && !is_at_end) error = simdjson::TRAILING_CONTENT;
  if (error) return tl::unexpected(s.explain(error, at));
  s.values.front().end = static_cast<std::uint32_t>(s.values.size());
  return std::span<const JsonLineValue>(s.values);
}

}  // namespace zeroproof
