#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "sim/trace/byte_source.h"

namespace zeroproof {

// Cuts a byte source into lines. Holds a window as large as the longest line so far, never the
// file. kJsonPadding readable bytes follow every line. A line longer than `max_line_bytes`, and as
// many bytes of blank lines in a row, are an error that names the limit. Not thread-safe.
class LineReader {
 public:
  struct Line {
    std::string_view text;      // without the newline; valid until the next call
    bool is_terminated = true;  // false: the source ended before its newline
  };

  LineReader(std::unique_ptr<ByteSource> source, std::size_t max_line_bytes);

  // The next line, blank ones included, or nullopt at the end.
  tl::expected<std::optional<Line>, std::string> next();

  bool is_cut_short() const { return source_->is_cut_short(); }

 private:
  tl::expected<bool, std::string> fill();
  bool has_too_many_blanks(std::string_view line);

  std::unique_ptr<ByteSource> source_;
  std::size_t max_line_bytes_;
  std::vector<char> window_;  // [begin_, end_) is unread
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t blank_bytes_ = 0;  // of the blank lines since the last line with text
  bool is_at_end_ = false;
};

}  // namespace zeroproof
