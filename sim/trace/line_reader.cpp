#include "sim/trace/line_reader.h"

#include <fmt/format.h>

#include <cstring>

#include "sim/trace/json_line.h"

namespace zeroproof {
namespace {

constexpr std::size_t kFirstWindowBytes = std::size_t{256} * 1024;

std::string too_long(std::size_t max_line_bytes) {
  return fmt::format("line longer than {} bytes; no record of a trace is that long, is this one?",
                     max_line_bytes);
}

std::string too_blank(std::size_t max_bytes) {
  return fmt::format("more than {} bytes of blank lines in a row, which is the limit; remove them",
                     max_bytes);
}

}  // namespace

LineReader::LineReader(std::unique_ptr<ByteSource> source, std::size_t max_line_bytes)
    : source_(std::move(source)),
      max_line_bytes_(max_line_bytes),
      window_(kFirstWindowBytes + kJsonPadding) {}

bool LineReader::has_too_many_blanks(std::string_view line) {
  const bool is_blank = line.find_first_not_of(" \t\r") == std::string_view::npos;
  blank_bytes_ = is_blank ? blank_bytes_ + line.size() + 1 : 0;
  return blank_bytes_ > max_line_bytes_;
}

// Makes room after the unread bytes and reads into it; false at the end of the source.
tl::expected<bool, std::string> LineReader::fill() {
  if (begin_ > 0) {
    std::memmove(window_.data(), window_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == window_.size() - kJsonPadding) window_.resize(2 * end_ + kJsonPadding);
  const auto room = std::span(window_).subspan(end_, window_.size() - kJsonPadding - end_);
  const auto got = source_->read(room);
  if (!got) return tl::unexpected(got.error());
  end_ += *got;
  return *got > 0;
}

tl::expected<std::optional<LineReader::Line>, std::string> LineReader::next() {
  std::size_t searched = 0;
  while (true) {
    const char* from = window_.data() + begin_;
    const void* found = std::memchr(from + searched, '\n', end_ - begin_ - searched);
    if (found != nullptr) {
      const auto size = static_cast<std::size_t>(static_cast<const char*>(found) - from);
      if (size > max_line_bytes_) return tl::unexpected(too_long(max_line_bytes_));
      begin_ += size + 1;
      if (has_too_many_blanks({from, size})) return tl::unexpected(too_blank(max_line_bytes_));
      return Line{std::string_view(from, size), true};
    }
    searched = end_ - begin_;
    if (searched > max_line_bytes_) return tl::unexpected(too_long(max_line_bytes_));
    if (!is_at_end_) {
      const auto more = fill();
      if (!more) return tl::unexpected(more.error());
      is_at_end_ = !*more;
      continue;
    }
    if (searched == 0) return std::nullopt;
    const Line rest{std::string_view(window_.data() + begin_, searched), false};
    begin_ = end_;
    return rest;
  }
}

}  // namespace zeroproof
