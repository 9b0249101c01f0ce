#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zeroproof {

// A sequence of which the beginning is kept entry by entry and the rest as hashes of blocks, so
// that two of them can be compared in bounded memory. A difference in the kept part is located
// exactly, a later one to its block, whose length doubles whenever kBlocksMax is reached.
class SequenceDigest {
 public:
  static constexpr std::size_t kEntriesMax = 4096;
  static constexpr std::size_t kBlocksMax = 1024;

  struct Entry {
    std::uint64_t lc = 0;
    std::string text;
  };

  // Where two sequences part.
  struct Difference {
    std::uint64_t index = 0;
    std::uint64_t index_end = 0;  // one past the block when only that is known
    const Entry* mine = nullptr;  // null when the entries are not kept
    const Entry* other = nullptr;
  };

  void add(std::uint64_t lc, std::string text);
  std::uint64_t size() const { return size_; }

  // nullopt when one is a prefix of the other; compare the sizes for that.
  std::optional<Difference> first_difference(const SequenceDigest& other) const;

 private:
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> blocks_;  // chained hash after each full block beyond the entries
  std::uint64_t block_ = 1;            // entries a block
  std::uint64_t size_ = 0;
  std::uint64_t hash_ = 0;
};

}  // namespace zeroproof
