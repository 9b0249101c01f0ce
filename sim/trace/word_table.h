#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
  Id find(std::string_view word) const {
    if (word.empty()) return Id{};
    for (std::size_t slot = hash(word); !slots_[slot].word.empty(); slot = (slot + 1) % kSlots) {
      if (is_equal(slots_[slot].word, word)) return slots_[slot].id;
    }
    return Id{};
  }

 private:
  // Words are short: eight bytes at a time, inline, beats the call of memcmp.
  static bool is_equal(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    if (a.size() < 8) {
      std::size_t i = 0;
      while (i < a.size() && a[i] == b[i]) ++i;
      return i == a.size();
    }
    const auto eight = [](const char* at) {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, at, 8);
      return bytes;
    };
    const std::size_t last = a.size() - 8;
    for (std::size_t i = 0; i < last; i += 8) {
      if (eight(a.data() + i) != eight(b.data() + i)) return false;
    }
    return eight(a.data() + last) == eight(b.data() + last);
  }

  // Length, ends and middle distinguish the words of the format.
  static constexpr std::size_t hash(std::string_view word) {
    const auto at = [word](std::size_t i) { return static_cast<unsigned char>(word[i]); };
    const std::size_t size = word.size();
    return (size * 7 + at(0) * 31U + at(size - 1) * 131U + at(size / 2) * 17U) % kSlots;
  }

  std::array<Entry, kSlots> slots_ = {};
};

}  // namespace zeroproof
