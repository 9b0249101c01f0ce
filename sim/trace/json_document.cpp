#include "sim/trace/json_document.h"

#include <fmt/format.h>

#include <array>

#include "sim/trace/parse_result.h"

namespace zeroproof {
namespace {

constexpr std::size_t kWindowBytes = 256 << 10;

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

struct Fault {
  std::string text;
};
struct DataEnded {};

// Bytes from a window.
class Bytes {
 public:
  explicit Bytes(ByteSource& source) : source_(source), window_(kWindowBytes, '\0') {}

  // What the window still holds, at least one byte. Throws DataEnded.
  std::string_view rest() {
    if (at_ == end_) fill();
    return std::string_view(window_).substr(at_, end_ - at_);
  }

  char peek() { return rest().front(); }
  void skip(std::size_t count) { at_ += count; }
  std::uint64_t offset() const { return before_ + at_; }

 private:
  void fill() {
    before_ += end_;
    at_ = end_ = 0;
    const auto got = source_.read(window_);
    if (!got) throw Fault{got.error()};
    if (*got == 0) throw DataEnded{};
    end_ = *got;
  }

  ByteSource& source_;
  std::string window_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::uint64_t before_ = 0;
};

// Where one of `wanted` stands; the size when none does.
std::size_t find_any(std::string_view text, const std::array<bool, 256>& wanted) {
  std::size_t at = 0;
  while (at < text.size() && !wanted[static_cast<unsigned char>(text[at])]) ++at;
  return at;
}

constexpr std::array<bool, 256> byte_set(std::string_view bytes) {
  std::array<bool, 256> set = {};
  for (const char c : bytes) set[static_cast<unsigned char>(c)] = true;
  return set;
}

constexpr auto kStructure = byte_set("\"{}[]");
constexpr auto kStringEnds = byte_set("\"\\");
constexpr auto kScalarEnds = byte_set(" \n\t\r,]}");

// Walks the outermost value. Values inside are walked by their brackets.
class DocumentReader {
 public:
  DocumentReader(ByteSource& source, JsonDocumentSink& sink, const JsonLimits& limits)
      : bytes_(source), sink_(sink), limits_(limits) {}

  JsonDocumentEnd run() {
    try {
      const char first = next_token();
      if (first == '[')
        read_elements("");
      else if (first == '{')
        read_members();
      else
        refuse(fmt::format("no JSON object or list but '{}'", printable({&first, 1})));
    } catch (const DataEnded&) {
      return {.is_truncated = true};
    }
    require_end();
    return {};
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Fault{fmt::format("no JSON: {} at byte {}", what, bytes_.offset())};
  }

  [[noreturn]] void refuse_limit(std::string_view what, std::size_t limit) const {
    throw Fault{fmt::format("{} at byte {} is longer than {} bytes, which is the limit", what,
                            bytes_.offset(), limit)};
  }

  // The next byte that is no blank, not taken.
  char next_token() {
    for (std::size_t blanks = 0; is_blank(bytes_.peek()); ++blanks) {
      if (blanks == limits_.blanks) refuse_limit("a run of blanks", limits_.blanks);
      bytes_.skip(1);
    }
    return bytes_.peek();
  }

  void expect(char wanted) {
    const char found = next_token();
    if (found != wanted)
      refuse(fmt::format("'{}' is expected, there is '{}'", wanted, printable({&found, 1})));
    bytes_.skip(1);
  }

  // After a member or element: true where another one follows.
  bool has_more(char close) {
    const char found = next_token();
    if (found != ',' && found != close)
      refuse(fmt::format("',' or '{}' is expected, there is '{}'", close, printable({&found, 1})));
    bytes_.skip(1);
    return found == ',';
  }

  void read_members() {
    expect('{');
    if (next_token() == '}') {
      bytes_.skip(1);
      return;
    }
    do {
      if (next_token() != '"') refuse("a key is expected");
      take_value(limits_.key, "a key");
      const std::string key = text_.substr(1, text_.size() - 2);
      expect(':');
      read_member(key);
    } while (has_more('}'));
  }

  void read_member(const std::string& key) {
    const JsonMember wanted = sink_.wanted(key);
    const char first = next_token();
    if (wanted == JsonMember::skipped) {
      walk_value({limits_.skipped, "a value that is not read"});
    } else if (wanted == JsonMember::elements && first == '[') {
      read_elements(key);
    } else {
      take_value(limits_.value, "a value");
      stop_on(sink_.on_value(key, text_));
    }
  }

  void read_elements(const std::string& key) {
    expect('[');
    if (next_token() == ']') {
      bytes_.skip(1);
      return;
    }
    do {
      next_token();
      take_value(limits_.value, "an element");
      stop_on(sink_.on_element(key, text_));
    } while (has_more(']'));
  }

  static void stop_on(std::string error) {
    if (!error.empty()) throw Fault{std::move(error)};
  }

  void take_value(std::size_t limit, std::string_view what) {
    text_.clear();
    walk_value({limit, what, &text_});
  }

  // A value that is being walked: its bytes are counted, and kept where `kept` is there.
  struct Walk {
    std::size_t limit = 0;
    std::string_view what;
    std::string* kept = nullptr;
    std::size_t size = 0;
  };

  void pass(Walk& walk, std::size_t count) {
    walk.size += count;
    if (walk.size > walk.limit) refuse_limit(walk.what, walk.limit);
    if (walk.kept != nullptr) walk.kept->append(bytes_.rest().substr(0, count));
    bytes_.skip(count);
  }

  // The byte that ends a stretch without `ends`, not passed.
  char pass_until(Walk& walk, const std::array<bool, 256>& ends) {
    for (;;) {
      const std::string_view rest = bytes_.rest();
      const std::size_t count = find_any(rest, ends);
      const bool is_found = count < rest.size();
      const char found = is_found ? rest[count] : '\0';
      pass(walk, count);
      if (is_found) return found;
    }
  }

  // Passes one value; its last byte is passed.
  void walk_value(Walk walk) {
    open_.clear();
    const char first = bytes_.peek();
    if (first != '"' && first != '{' && first != '[') return walk_scalar(walk);
    do {
      const char c = pass_until(walk, kStructure);
      if (c == '"') {
        walk_string(walk);
      } else {
        pass(walk, 1);
        walk_bracket(c);
      }
    } while (!open_.empty());
  }

  void walk_string(Walk& walk) {
    pass(walk, 1);
    while (pass_until(walk, kStringEnds) == '\\') {
      pass(walk, 1);
      bytes_.peek();  // an escape may lie across two windows
      pass(walk, 1);
    }
    pass(walk, 1);
  }

  // A number or literal, which ends before what cannot belong to it.
  void walk_scalar(Walk& walk) {
    if (kScalarEnds[static_cast<unsigned char>(bytes_.peek())]) refuse("a value is expected");
    pass_until(walk, kScalarEnds);
  }

  void walk_bracket(char c) {
    if (c == '{' || c == '[') {
      if (open_.size() == limits_.depth)
        refuse(fmt::format("a value is nested deeper than {} levels", limits_.depth));
      open_ += c == '{' ? '}' : ']';
    } else if (c == '}' || c == ']') {
      if (open_.back() != c) refuse(fmt::format("'{}' closes what it did not open", c));
      open_.pop_back();
    }
  }

  // Only blanks may follow.
  void require_end() {
    try {
      next_token();
    } catch (const DataEnded&) {
      return;
    }
    refuse("something follows the document");
  }

  Bytes bytes_;
  JsonDocumentSink& sink_;
  const JsonLimits& limits_;
  std::string text_;
  std::string open_;  // the closing brackets that are due
};

class KeySink final : public JsonDocumentSink {
 public:
  JsonMember wanted(std::string_view key) override {
    keys += std::string(key) + "\n";
    return JsonMember::skipped;
  }
  std::string on_value(std::string_view, std::string_view) override { return {}; }
  std::string on_element(std::string_view, std::string_view) override { return "a list"; }

  std::string keys;
};

}  // namespace

tl::expected<JsonDocumentEnd, std::string> read_json_document(ByteSource& source,
                                                              JsonDocumentSink& sink,
                                                              const JsonLimits& limits) {
  try {
    return DocumentReader(source, sink, limits).run();
  } catch (const Fault& fault) {
    return tl::unexpected(fault.text);
  }
}

std::string json_keys(std::string_view first_bytes) {
  KeySink sink;
  const auto source = open_memory_source(first_bytes);
  if (source) static_cast<void>(read_json_document(**source, sink));
  return sink.keys;
}

}  // namespace zeroproof
