#include "props/replay/sequence_digest.h"

#include <algorithm>
#include <utility>

namespace zeroproof {
namespace {

// FNV-1a over the text, chained.
std::uint64_t chain(std::uint64_t hash, const std::string& text) {
  constexpr std::uint64_t kPrime = 1099511628211U;
  constexpr std::uint64_t kOffset = 14695981039346656037U;
  if (hash == 0) hash = kOffset;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * kPrime;
  return (hash ^ 0xffU) * kPrime;
}

}  // namespace

void SequenceDigest::add(std::uint64_t lc, std::string text) {
  hash_ = chain(hash_, text);
  size_ += 1;
  if (size_ <= kEntriesMax) {
    entries_.push_back({lc, std::move(text)});
    return;
  }
  if ((size_ - kEntriesMax) % block_ != 0) return;
  blocks_.push_back(hash_);
  if (blocks_.size() < kBlocksMax) return;
  for (std::size_t kept = 0; kept < kBlocksMax / 2; ++kept) blocks_[kept] = blocks_[2 * kept + 1];
  blocks_.resize(kBlocksMax / 2);
  block_ *= 2;
}

std::optional<SequenceDigest::Difference> SequenceDigest::first_difference(
    const SequenceDigest& other) const {
  const std::size_t kept = std::min(entries_.size(), other.entries_.size());
  for (std::size_t index = 0; index < kept; ++index)
    if (entries_[index].text != other.entries_[index].text)
      return Difference{index, index + 1, &entries_[index], &other.entries_[index]};
  // Block lengths are powers of two: the coarser one's ends are ends of the finer one, too.
  const std::uint64_t block = std::max(block_, other.block_);
  for (std::uint64_t end = block;; end += block) {
    const std::size_t mine = end / block_ - 1;
    const std::size_t others = end / other.block_ - 1;
    if (mine >= blocks_.size() || others >= other.blocks_.size()) break;
    if (blocks_[mine] != other.blocks_[others])
      return Difference{kEntriesMax + end - block, kEntriesMax + end, nullptr, nullptr};
  }
  if (size_ == other.size_ && hash_ != other.hash_)
    return Difference{size_ - (size_ - kEntriesMax) % block, size_, nullptr, nullptr};
  return std::nullopt;
}

}  // namespace zeroproof
