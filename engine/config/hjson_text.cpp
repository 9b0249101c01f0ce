#include "engine/config/hjson_text.h"

#include <cctype>

namespace zeroproof {
namespace {

constexpr std::size_t kHjsonLevelsMax = 64;
constexpr char kEnd = '\0';

struct MalformedHjson {
  std::size_t at;
  std::string what;
};

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_punctuator(char c) {
  return std::string_view("{}[],:").find(c) != std::string_view::npos;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view without_trailing_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::size_t digits_at(std::string_view text, std::size_t at) {
  std::size_t count = 0;
  while (at + count < text.size() && is_digit(text[at + count])) ++count;
  return count;
}

// -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)?
bool is_number(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const std::size_t whole = digits_at(text, at);
  if (whole == 0 || (whole > 1 && text[at] == '0')) return false;
  at += whole;
  if (at < text.size() && text[at] == '.') {
    const std::size_t fraction = digits_at(text, ++at);
    if (fraction == 0) return false;
    at += fraction;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const std::size_t exponent = digits_at(text, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == text.size();
}

bool is_literal(std::string_view text) {
  return text == "true" || text == "false" || text == "null" || is_number(text);
}

class Transcoder {
 public:
  explicit Transcoder(std::string_view text) : text_(text) {}

  std::string document() {
    const char first = next();
    if (first == '{' || first == '[') {
      value();
    } else {
      json_ += '{';
      members(kEnd);
      json_ += '}';
    }
    if (next() != kEnd || at_ < text_.size()) fail("text after the document");
    return std::move(json_);
  }

 private:
  [[noreturn]] void fail(std::string what) const { throw MalformedHjson{at_, std::move(what)}; }

  // The byte at `at`, or kEnd after the last one.
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : kEnd;
  }

  bool is_comment() const {
    return peek() == '#' || (peek() == '/' && (peek(1) == '/' || peek(1) == '*'));
  }

  bool is_line_end() const { return at_ >= text_.size() || peek() == '\n' || peek() == '\r'; }

  void skip_comment() {
    if (peek() == '/' && peek(1) == '*') {
      const std::size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) fail("a comment without its end");
      at_ = end + 2;
      return;
    }
    while (!is_line_end()) ++at_;
  }

  // Skips blanks and comments; the byte after them.
  char next() {
    while (at_ < text_.size()) {
      if (is_comment()) {
        skip_comment();
      } else if (is_blank(peek())) {
        ++at_;
      } else {
        break;
      }
    }
    return peek();
  }

  void value() {
    switch (next()) {
      case '{':
        return nested('{', '}', &Transcoder::members);
      case '[':
        return nested('[', ']', &Transcoder::items);
      case '"':
      case '\'':
        return quoted();
      default:
        return bare_value();
    }
  }

  void nested(char open, char close, void (Transcoder::*inside)(char)) {
    if (++level_ > kHjsonLevelsMax) fail("nested deeper than 64 levels");
    ++at_;
    json_ += open;
    (this->*inside)(close);
    ++at_;
    json_ += close;
    --level_;
  }

  // Up to `close`, which is left: members of an object.
  void members(char close) {
    for (bool is_first = true; next() != close; is_first = false) {
      if (!is_first) json_ += ',';
      key();
      if (next() != ':') fail("expected ':' after a key");
      ++at_;
      json_ += ':';
      value();
      skip_comma();
    }
  }

  void items(char close) {
    for (bool is_first = true; next() != close; is_first = false) {
      if (at_ >= text_.size()) fail("expected ']'");
      if (!is_first) json_ += ',';
      value();
      skip_comma();
    }
  }

  void skip_comma() {
    if (next() == ',') ++at_;
  }

  void key() {
    if (next() == '"' || peek() == '\'') return quoted();
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_punctuator(peek()) && !is_blank(peek())) ++at_;
    if (at_ == begin) fail(at_ < text_.size() ? "expected a key" : "expected '}'");
    append_text(text_.substr(begin, at_ - begin));
  }

  // A literal or a number up to a separator, else a text up to the end of the line.
  void bare_value() {
    if (at_ >= text_.size()) fail("expected a value");
    if (is_punctuator(peek())) fail("expected a value");
    const std::size_t begin = at_;
    while (!is_line_end()) {
      const bool may_end = peek() == ',' || peek() == '}' || peek() == ']' || is_comment();
      if (may_end && is_literal(bare_text(begin))) break;
      ++at_;
    }
    const std::string_view found = bare_text(begin);
    if (is_literal(found)) {
      json_ += found;
    } else {
      append_text(found);
    }
  }

  std::string_view bare_text(std::size_t begin) const {
    return without_trailing_blanks(text_.substr(begin, at_ - begin));
  }

  void quoted() {
    const char quote = peek();
    if (text_.substr(at_).starts_with("'''")) fail("a multi-line text; give one in quotes");
    const std::size_t begin = at_++;
    json_ += '"';
    while (peek() != quote || at_ >= text_.size()) {
      if (is_line_end()) {
        at_ = begin;
        fail("a text without its closing quote");
      }
      if (peek() == '\\') {
        escape();
      } else {
        if (peek() == '"') json_ += '\\';
        json_ += text_[at_++];
      }
    }
    ++at_;
    json_ += '"';
  }

  // JSON knows the escapes of Hjson, but for that of a single quote.
  void escape() {
    const char escaped = peek(1);
    if (escaped != '\'') json_ += '\\';
    if (at_ + 1 < text_.size()) json_ += escaped;
    at_ += 2;
  }

  void append_text(std::string_view text) {
    json_ += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') json_ += '\\';
      json_ += c;
    }
    json_ += '"';
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t level_ = 0;
  std::string json_;
};

}  // namespace

HjsonText json_of_hjson(std::string_view text) {
  HjsonText result;
  try {
    result.json = Transcoder(text).document();
  } catch (const MalformedHjson& malformed) {
    result.error = malformed.what;
    result.at = malformed.at < text.size() ? malformed.at : text.size();
  }
  return result;
}

}  // namespace zeroproof
