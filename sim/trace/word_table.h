#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace zeroproof {

// A fixed set of words, looked up without allocation. Built at compile time; Id is an enum.
template <class Id, std::size_t kSlots>
class WordTable {
 public:
  struct Entry {
    std::string_view word;
    Id id{};
  };

  template <std::size_t kCount>
  constexpr explicit WordTable(const std::array<Entry, kCount>& entries) {
    static_assert(2 * kCount <= kSlots);
    for (const Entry& entry : entries) {
      std::size_t slot = hash(entry.word);
      while (!slots_[slot].word.empty()) slot = (slot + 1) % kSlots;
      slots_[slot] = entry;
    }
  }

  // Id{} for a word that is not in the table.
  constexpr Id find(std::string_view word) const {
    if (word.empty()) return Id{};
    for (std::size_t slot = hash(word); !slots_[slot].word.empty(); slot = (slot + 1) % kSlots) {
      if (slots_[slot].word == word) return slots_[slot].id;
    }
    return Id{};
  }

 private:
  // Length, ends and middle tell the words of the format apart.
  static constexpr std::size_t hash(std::string_view word) {
    const auto at = [word](std::size_t i) { return static_cast<unsigned char>(word[i]); };
    const std::size_t size = word.size();
    return (size * 7 + at(0) * 31U + at(size - 1) * 131U + at(size / 2) * 17U) % kSlots;
  }

  std::array<Entry, kSlots> slots_ = {};
};

}  // namespace zeroproof
