#include "sim/trace/json_line.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <vector>

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

std::size_t skip_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  return at;
}

bool is_json_number(std::string_view text) {
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  std::size_t at = skip_digits(text, first);
  if (at == first || (text[first] == '0' && at > first + 1)) return false;
  if (at < text.size() && text[at] == '.') {
    const std::size_t fraction = at + 1;
    at = skip_digits(text, fraction);
    if (at == fraction) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const std::size_t exponent = at;
    at = skip_digits(text, exponent);
    if (at == exponent) return false;
  }
  return at == text.size();
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

std::string_view json_kind_name(JsonKind kind) {
  static constexpr std::string_view kNames[] = {"null",     "a boolean", "an integer", "a number",
                                                "a string", "an array",  "an object"};
  return kNames[static_cast<std::size_t>(kind)];
}

struct JsonLine::State {
  ondemand::parser parser;
  std::vector<JsonValue> values;
  std::string_view line;

  simdjson::error_code grow_to(std::size_t bytes);
  simdjson::error_code add(ondemand::value value, std::string_view key, int depth);
  simdjson::error_code add_scalar(ondemand::value& value, ondemand::json_type type, JsonValue& out);
  simdjson::error_code add_members(ondemand::object& object, int depth);
  simdjson::error_code add_elements(ondemand::array& array, int depth);
  static simdjson::error_code set_number(ondemand::value& value, JsonValue& out);
  std::string explain(simdjson::error_code error, const char* at) const;
};

// The parser would otherwise reallocate for every line longer than all before.
simdjson::error_code JsonLine::State::grow_to(std::size_t bytes) {
  if (bytes <= parser.capacity()) return simdjson::SUCCESS;
  return parser.allocate(std::bit_ceil(std::max<std::size_t>(bytes, 4096)), kMaxDepth + 2);
}

simdjson::error_code JsonLine::State::set_number(ondemand::value& value, JsonValue& out) {
  out.kind = JsonKind::number;
  out.text = value.raw_json_token();
  while (!out.text.empty() && static_cast<unsigned char>(out.text.back()) <= ' ') {
    out.text.remove_suffix(1);
  }
  ondemand::number number;
  const auto error = value.get_number().get(number);
  if (!error) {
    out.number = number.as_double();
    if (number.is_int64()) {
      out.kind = JsonKind::integer;
      out.integer = number.get_int64();
    }
    return simdjson::SUCCESS;
  }
  // Correct JSON may be beyond 64 bits or beyond a double: unknown fields may hold it.
  if (!is_json_number(out.text)) return error;
  const char* end = out.text.data() + out.text.size();
  if (std::from_chars(out.text.data(), end, out.number).ec == std::errc::result_out_of_range) {
    out.number = std::numeric_limits<double>::infinity();
  }
  return simdjson::SUCCESS;
}

simdjson::error_code JsonLine::State::add_scalar(ondemand::value& value, ondemand::json_type type,
                                                 JsonValue& out) {
  switch (type) {
    case ondemand::json_type::string:
      out.kind = JsonKind::string;
      return value.get_string().get(out.text);
    case ondemand::json_type::number:
      return set_number(value, out);
    case ondemand::json_type::boolean:
      out.kind = JsonKind::boolean;
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
  JsonValue& out = values.emplace_back();
  out.key = key;
  simdjson::error_code error = simdjson::SUCCESS;
  if (type == ondemand::json_type::object) {
    out.kind = JsonKind::object;
    ondemand::object object;
    error = value.get_object().get(object);
    if (!error) error = add_members(object, depth);
  } else if (type == ondemand::json_type::array) {
    out.kind = JsonKind::array;
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
    if (const auto error = field.unescaped_key().get(key)) return error;
    if (const auto error = add(field.value(), key, depth + 1)) return error;
  }
  return simdjson::SUCCESS;
}

simdjson::error_code JsonLine::State::add_elements(ondemand::array& array, int depth) {
  for (auto element : array) {
    ondemand::value value;
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

tl::expected<std::span<const JsonValue>, std::string> JsonLine::parse(std::string_view line) {
  State& s = *state_;
  s.line = line;
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
  s.values.emplace_back().kind = JsonKind::object;
  if (!error) error = s.add_members(object, 1);
  const char* at = nullptr;
  const bool is_at_end = document.current_location().get(at) != simdjson::SUCCESS;
  if (!error && !is_at_end) error = simdjson::TRAILING_CONTENT;
  if (error) return tl::unexpected(s.explain(error, at));
  s.values.front().end = static_cast<std::uint32_t>(s.values.size());
  return std::span<const JsonValue>(s.values);
}

}  // namespace zeroproof
