#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace zeroproof {

// The set of states met, one bit a code: exact, and the smallest store there is when a good part
// of the codes can be reached. Workers may insert at the same time; which of them is told that a
// code is new may vary, how many are new may not.
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
  bool insert_shared(std::uint64_t code) {
    std::atomic_ref<std::uint64_t> word(words_[code >> 6]);
    const std::uint64_t bit = std::uint64_t{1} << (code & 63);
    if ((word.load(std::memory_order_relaxed) & bit) != 0) return false;
    return (word.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }
  bool contains(std::uint64_t code) const { return (words_[code >> 6] >> (code & 63) & 1) != 0; }

  std::uint64_t bytes() const { return words_.size() * sizeof(std::uint64_t); }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace zeroproof
