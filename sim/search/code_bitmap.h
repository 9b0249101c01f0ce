#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zeroproof {

// The set of states met, one bit a code: exact, and the smallest store there is when a good part
// of the codes can be reached. Not thread-safe: each worker has its own.
class CodeBitmap {
 public:
  explicit CodeBitmap(std::uint64_t codes) : words_(codes / 64 + 1) {}

  void prefetch(std::uint64_t code) const { __builtin_prefetch(&words_[code >> 6], 1); }

  // True when the code was not there.
  bool insert(std::uint64_t code) {
    std::uint64_t& word = words_[code >> 6];
    const std::uint64_t bit = std::uint64_t{1} << (code & 63);
    const bool is_new = (word & bit) == 0;
    word |= bit;
    return is_new;
  }
  bool contains(std::uint64_t code) const { return (words_[code >> 6] >> (code & 63) & 1) != 0; }

  std::uint64_t bytes() const { return words_.size() * sizeof(std::uint64_t); }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace zeroproof
