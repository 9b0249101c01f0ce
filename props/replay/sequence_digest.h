#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof {

// A chain of 64-bit hashes; equal inputs give equal chains on every machine.
std::uint64_t chained(std::uint64_t hash, std::uint64_t value);
std::uint64_t text_hash(std::string_view text);

// A sequence as hashes, so that two of them can be compared in bounded memory (at most 3 KB without
// texts). A difference among the first kExactMax entries is located exactly, a later one to its
// block, whose length doubles whenever kBlocksMax is reached.
class SequenceDigest {
 public:
  static constexpr std::size_t kExactMax = 128;
  static constexpr std::size_t kBlocksMax = 64;

  struct Entry {
    std::uint64_t lc = 0;
    std::uint64_t hash = 0;
  };

  // Where two sequences part.
  struct Difference {
    std::uint64_t index = 0;
    std::uint64_t index_end = 0;  // one past the block when only that is known
    std::uint64_t lc = 0;         // of `this`; 0 when the entry is not kept
    std::uint64_t other_lc = 0;

    bool is_exact() const { return lc > 0 && other_lc > 0; }
  };

  // `text` is kept for the first entries; empty for sequences that need none.
  void add(std::uint64_t lc, std::uint64_t hash, std::string_view text = {});
  std::uint64_t size() const { return size_; }
  std::uint64_t hash() const { return hash_; }
  // Empty when it was not kept.
  std::string_view text(std::uint64_t index) const;

  // nullopt when one is a prefix of the other; compare the sizes for that.
  std::optional<Difference> first_difference(const SequenceDigest& other) const;

  // Bytes on the heap.
  std::size_t memory_bytes() const;

 private:
  std::vector<Entry> entries_;
  std::vector<std::string> texts_;
  std::vector<std::uint64_t> blocks_;  // chained hash after each full block beyond the entries
  std::uint64_t block_ = 1;            // entries a block
  std::uint64_t size_ = 0;
  std::uint64_t hash_ = 0;
};

}  // namespace zeroproof
