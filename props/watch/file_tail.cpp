#include "props/watch/file_tail.h"

#include <utility>

namespace zeroproof {
namespace {

constexpr std::size_t kFilePieceBytes = std::size_t{256} * 1024;

}  // namespace

FileTail::FileTail(std::unique_ptr<GrowingBytes> bytes) : bytes_(std::move(bytes)) {}

bool FileTail::poll(std::vector<NumberedLine>& lines) {
  const std::uint64_t identity = bytes_->identity();
  if (identity == 0) return false;
  const std::uint64_t size = bytes_->size();
  const bool is_replaced = identity_ != 0 && identity != identity_;
  if (is_replaced || size < offset_) restart();
  if (damaged_size_ != 0 && size == damaged_size_) return true;
  identity_ = identity;
  while (true) {
    const std::string piece = bytes_->read_at(offset_, kFilePieceBytes);
    if (piece.size() < (offset_ == 0 ? 2U : 1U)) return true;  // two bytes say whether it is gzip
    if (!take(piece)) break;
    cut_lines(lines);
  }
  // A writer that died in the middle of a member is cut back by the one that takes over: what
  // stands there then is read again.
  restart();
  damaged_size_ = size;
  return true;
}

void FileTail::restart() {
  inflater_.reset();
  text_.clear();
  offset_ = 0;
  next_number_ = 0;
  damaged_size_ = 0;
  ++restarts_;
}

bool FileTail::take(std::string_view bytes) {
  if (offset_ == 0 && starts_like_gzip(bytes)) inflater_ = std::make_unique<GzipInflater>();
  offset_ += bytes.size();
  if (inflater_) return inflater_->add(bytes, text_);
  text_ += bytes;
  return true;
}

void FileTail::cut_lines(std::vector<NumberedLine>& lines) {
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text_.find('\n', begin);
    if (end == std::string::npos) break;
    const std::string_view line = std::string_view(text_).substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    lines.push_back({next_number_++, std::string(line)});
  }
  text_.erase(0, begin);
}

}  // namespace zeroproof
