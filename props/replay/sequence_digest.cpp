#include "props/replay/sequence_digest.h"

#include <algorithm>

namespace zeroproof {

std::uint64_t chained(std::uint64_t hash, std::uint64_t value) {
  constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15U;
  hash = (hash ^ value) * kMultiplier;
  return hash ^ (hash >> 29);
}

std::uint64_t text_hash(std::string_view text) {
  std::uint64_t hash = 1;
  for (const char byte : text) hash = chained(hash, static_cast<unsigned char>(byte));
  return hash | 1;
}

void SequenceDigest::add(std::uint64_t lc, std::uint64_t hash, std::string_view text) {
  hash_ = chained(hash_, hash);
  size_ += 1;
  if (size_ <= kExactMax) {
    entries_.push_back({lc, hash});
    if (!text.empty()) {
      texts_.resize(entries_.size());
      texts_.back() = text;
    }
    return;
  }
  if ((size_ - kExactMax) % block_ != 0) return;
  blocks_.push_back(hash_);
  if (blocks_.size() < kBlocksMax) return;
  for (std::size_t kept = 0; kept < kBlocksMax / 2; ++kept) blocks_[kept] = blocks_[2 * kept + 1];
  blocks_.resize(kBlocksMax / 2);
  block_ *= 2;
}

std::string_view SequenceDigest::text(std::uint64_t index) const {
  return index < texts_.size() ? std::string_view(texts_[index]) : std::string_view();
}

std::optional<SequenceDigest::Difference> SequenceDigest::first_difference(
    const SequenceDigest& other) const {
  const std::size_t kept = std::min(entries_.size(), other.entries_.size());
  for (std::size_t index = 0; index < kept; ++index)
    if (entries_[index].hash != other.entries_[index].hash)
      return Difference{index, index + 1, entries_[index].lc, other.entries_[index].lc};
  // Block lengths are powers of two: the coarser one's ends are ends of the finer one, too.
  const std::uint64_t block = std::max(block_, other.block_);
  for (std::uint64_t end = block;; end += block) {
    const std::size_t mine = end / block_ - 1;
    const std::size_t others = end / other.block_ - 1;
    if (mine >= blocks_.size() || others >= other.blocks_.size()) break;
    if (blocks_[mine] != other.blocks_[others])
      return Difference{kExactMax + end - block, kExactMax + end, 0, 0};
  }
  if (size_ == other.size_ && hash_ != other.hash_)
    return Difference{size_ - (size_ - kExactMax) % block, size_, 0, 0};
  return std::nullopt;
}

std::size_t SequenceDigest::memory_bytes() const {
  std::size_t bytes = entries_.capacity() * sizeof(Entry) +
                      blocks_.capacity() * sizeof(std::uint64_t) +
                      texts_.capacity() * sizeof(std::string);
  for (const std::string& text : texts_) bytes += text.capacity();
  return bytes;
}

}  // namespace zeroproof
