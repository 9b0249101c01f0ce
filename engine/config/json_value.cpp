#include "engine/config/json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/config/hjson_text.h"
#include "model/one_line.h"

namespace zeroproof {
namespace {

constexpr std::size_t kJsonLevelsMax = 64;
constexpr std::size_t kMaxDescribed = 60;

// 2^63: every double below it, and no double from it on, is an int64 when it is whole.
constexpr double kIntegerEnd = 9223372036854775808.0;

std::string shortened(std::string text) {
  text = one_line(std::move(text));
  if (text.size() <= kMaxDescribed) return text;
  std::size_t end = kMaxDescribed - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// "3:14", both from 1, of the byte at `offset`.
std::string place_of(std::string_view document, std::size_t offset) {
  const std::string_view before = document.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}", line, before.size() - line_begin + 1);
}

// Builds a JsonValue; the first thing wrong stops the parser and is left in `error`.
class Builder {
 public:
  using Json = nlohmann::json;

  explicit Builder(std::string_view document) : document_(document) {}

  bool null() { return add({}); }
  bool boolean(bool value) { return add({.kind = JsonKind::boolean, .boolean = value}); }
  bool number_integer(std::int64_t value) {
    return add({.kind = JsonKind::number, .number = static_cast<double>(value), .integer = value});
  }
  bool number_unsigned(std::uint64_t value) {
    if (value <= INT64_MAX) return number_integer(static_cast<std::int64_t>(value));
    return add({.kind = JsonKind::number, .number = static_cast<double>(value)});
  }
  bool number_float(double value, const std::string&) {
    JsonValue number{.kind = JsonKind::number, .number = value};
    const bool is_whole = value == std::trunc(value) && std::abs(value) < kIntegerEnd;
    if (is_whole) number.integer = static_cast<std::int64_t>(value);
    return add(std::move(number));
  }
  bool string(std::string& value) {
    return add({.kind = JsonKind::text, .text = std::move(value)});
  }
  bool binary(std::vector<std::uint8_t>&) { return false; }  // not in JSON text

  bool start_object(std::size_t) { return open(JsonKind::object); }
  bool start_array(std::size_t) { return open(JsonKind::list); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    if (!names_.back().insert(name).second) {
      error = fmt::format(" {}: given twice; keep one", json_pointer(pointer(), name));
      return false;
    }
    open_.back().names.push_back(std::move(name));
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception& exception) {
    is_malformed = true;
    error = fmt::format("{}: {}", place_after(position), plain(exception.what()));
    return false;
  }

  JsonValue root;
  std::string error;          // after "source:"; empty: none
  bool is_malformed = false;  // the error is one of syntax

 private:
  bool open(JsonKind kind) {
    if (open_.size() == kJsonLevelsMax) {
      error = fmt::format(" {}: nested deeper than {} levels", pointer().substr(0, kMaxDescribed),
                          kJsonLevelsMax);
      return false;
    }
    open_.push_back({.kind = kind});
    names_.emplace_back();
    return true;
  }

  bool close() {
    JsonValue done = std::move(open_.back());
    open_.pop_back();
    names_.pop_back();
    return add(std::move(done));
  }

  bool add(JsonValue value) {
    if (open_.empty()) {
      root = std::move(value);
    } else {
      open_.back().values.push_back(std::move(value));
    }
    return true;
  }

  // Of the innermost value that is still open.
  std::string pointer() const {
    std::string pointer;
    for (std::size_t at = 0; at + 1 < open_.size(); ++at) {
      const JsonValue& value = open_[at];
      pointer = value.kind == JsonKind::object ? json_pointer(pointer, value.names.back())
                                               : fmt::format("{}/{}", pointer, value.values.size());
    }
    return pointer;
  }

  // `position` counts the bytes read, the offending one included.
  std::string place_after(std::size_t position) const {
    return place_of(document_, std::max<std::size_t>(position, 1) - 1);
  }

  // Without the library's "[json.exception.parse_error.101] parse error at line 1, column 2: ".
  static std::string plain(std::string_view what) {
    const std::size_t bracket = what.find("] ");
    if (bracket != std::string_view::npos) what.remove_prefix(bracket + 2);
    if (what.starts_with("parse error at ")) {
      const std::size_t colon = what.find(": ");
      if (colon != std::string_view::npos) what.remove_prefix(colon + 2);
    }
    return one_line(std::string(what));
  }

  std::string_view document_;
  std::vector<JsonValue> open_;
  std::vector<std::set<std::string>> names_;  // of each open value's members
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? nullptr : &values[static_cast<std::size_t>(found - names.begin())];
}

std::string JsonValue::described() const {
  switch (kind) {
    case JsonKind::null:
      return "null";
    case JsonKind::boolean:
      return boolean ? "true" : "false";
    case JsonKind::number:
      return integer ? fmt::format("{}", *integer) : fmt::format("{}", number);
    case JsonKind::text:
      return shortened(fmt::format("\"{}\"", text));
    case JsonKind::list:
      return values.empty() ? "an empty list" : "a list";
    case JsonKind::object:
      break;
  }
  return values.empty() ? "an empty object" : "an object";
}

std::string json_pointer(std::string_view pointer, std::string_view name) {
  std::string result(pointer);
  result += '/';
  for (const char c : name) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result += c;
    }
  }
  return one_line(std::move(result));
}

Result<JsonValue> parse_json(const std::string& text, const std::string& source) {
  Builder builder(text);
  if (nlohmann::json::sax_parse(text, &builder)) return std::move(builder.root);
  if (!builder.is_malformed) return fail(ErrorCode::usage, source + ":" + builder.error);
  const HjsonText hjson = json_of_hjson(text);
  if (!hjson.error.empty()) {
    return fail(ErrorCode::usage,
                fmt::format("{}:{}; nor is it Hjson, {}: {}", source, builder.error,
                            place_of(text, hjson.at), hjson.error));
  }
  Builder again(hjson.json);
  if (nlohmann::json::sax_parse(hjson.json, &again)) return std::move(again.root);
  const Builder& wrong = again.is_malformed ? builder : again;
  return fail(ErrorCode::usage, source + ":" + wrong.error);
}

}  // namespace zeroproof
