#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "sim/trace/byte_source.h"

namespace zeroproof {

// What to do with a member of the outermost object.
enum class JsonMember : std::uint8_t {
  skipped,   // checked for its brackets only, never held
  whole,     // given as one value
  elements,  // a list, given element by element; any other value is given whole
};

// Receives the parts of a document as text, which is JSON only if a parser says so: the reader
// looks at brackets, strings and commas. A returned text stops the reading as an error.
class JsonDocumentSink {
 public:
  virtual ~JsonDocumentSink() = default;
  virtual JsonMember wanted(std::string_view key) = 0;
  virtual std::string on_value(std::string_view key, std::string_view text) = 0;
  virtual std::string on_element(std::string_view key, std::string_view text) = 0;
};

struct JsonLimits {
  std::size_t blanks = std::size_t{16} << 20;  // in a row
  std::size_t value = std::size_t{16} << 20;   // one value or element that is given
  std::size_t skipped = std::size_t{1} << 30;  // one member that is skipped
  std::size_t key = std::size_t{64} << 10;
  std::size_t depth = 256;
};

struct JsonDocumentEnd {
  bool is_truncated = false;  // the data stopped before the document did
};

// Reads one document whose outermost value is an object, or a list, which counts as a member
// "" of kind elements. Memory: one value that is given, and a window. Data that stop early are no
// error: whatever was complete has been given. Errors are one sentence with the place, without the
// name of the file; a limit that was met is named.
tl::expected<JsonDocumentEnd, std::string> read_json_document(ByteSource& source,
                                                              JsonDocumentSink& sink,
                                                              const JsonLimits& limits = {});

// The keys of the outermost object of a document whose first bytes these are, each followed by a
// newline. Empty for anything else.
std::string json_keys(std::string_view first_bytes);

}  // namespace zeroproof
