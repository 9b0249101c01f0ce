#include "props/watch/spool_tail.h"

#include <cstring>
#include <utility>

namespace zeroproof {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kSpoolPieceBytes = std::size_t{1} << 20;

// 0: no record begins here, or it is not there as a whole.
std::uint32_t length_at(std::string_view bytes, std::size_t at) {
  std::uint32_t length = 0;
  if (at + kLengthBytes > bytes.size()) return 0;
  std::memcpy(&length, bytes.data() + at, kLengthBytes);
  return at + kLengthBytes + length > bytes.size() ? 0 : length;
}

}  // namespace

SpoolTail::SpoolTail(std::unique_ptr<GrowingBytes> bytes) : bytes_(std::move(bytes)) {}

const SpoolBase* SpoolTail::base() const {
  return is_understood_ && lines_.base() ? &*lines_.base() : nullptr;
}

std::string SpoolTail::record_at(std::uint64_t offset) {
  const std::string length = bytes_->read_at(offset, kLengthBytes);
  if (length.size() < kLengthBytes) return {};
  std::uint32_t size = 0;
  std::memcpy(&size, length.data(), kLengthBytes);
  if (size == 0) return {};
  std::string record = bytes_->read_at(offset + kLengthBytes, size);
  return record.size() == size ? record : std::string();
}

void SpoolTail::begin_pass(std::string first) {
  first_ = std::move(first);
  lines_ = SpoolLines();
  offset_ = kLengthBytes + first_.size();
  is_understood_ = lines_.add(first_) && lines_.base();
  records_before_ = is_understood_ ? lines_.base()->records : 0;
}

bool SpoolTail::poll() {
  if (bytes_->identity() == 0) return false;
  std::string first = record_at(0);
  if (first.empty()) return true;  // its owner empties it just now
  if (first != first_) begin_pass(std::move(first));
  while (is_understood_ && add_piece()) {
  }
  return true;
}

// What is read counts only if the pass is still the same afterwards.
bool SpoolTail::add_piece() {
  std::string piece = bytes_->read_at(offset_, kSpoolPieceBytes);
  if (length_at(piece, 0) == 0) {  // a record may be longer than a piece
    const std::string one = record_at(offset_);
    if (one.empty()) return false;
    piece = std::string(kLengthBytes, '\0') + one;
    const auto size = static_cast<std::uint32_t>(one.size());
    std::memcpy(piece.data(), &size, kLengthBytes);
  }
  if (record_at(0) != first_) return false;
  std::size_t at = 0;
  while (const std::uint32_t length = length_at(piece, at)) {
    is_understood_ = lines_.add(std::string_view(piece).substr(at + kLengthBytes, length));
    if (!is_understood_) return false;
    at += kLengthBytes + length;
  }
  offset_ += at;
  return at > 0;
}

std::vector<std::string> SpoolTail::take() {
  std::vector<std::string> lines = lines_.take();
  records_before_ += lines.size();
  return lines;
}

void SpoolTail::rewind() {
  begin_pass(std::string(first_));
}

}  // namespace zeroproof
