#pragma once

#include <cstdint>
#include <vector>

namespace zeroproof {

// The set of states met, as whole codes in an open-addressing table: exact. Numbers the codes
// 0, 1, 2, ... in order of insertion, so a caller can keep what it wants about a state in vectors
// of its own. Not thread-safe.
class CodeTable {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  CodeTable() : slots_(kFirstSlots, kNone) { codes_.reserve(kFirstSlots / 2); }

  struct Inserted {
    std::uint32_t index = 0;
    bool is_new = false;
  };
  Inserted insert(std::uint64_t code) {
    std::size_t slot = first_slot(code);
    for (; slots_[slot] != kNone; slot = (slot + 1) & (slots_.size() - 1)) {
      if (codes_[slots_[slot]] == code) return {slots_[slot], false};
    }
    const auto index = static_cast<std::uint32_t>(codes_.size());
    slots_[slot] = index;
    codes_.push_back(code);
    if (codes_.size() * 10 > slots_.size() * 7) grow();
    return {index, true};
  }
  // kNone when the code is not there.
  std::uint32_t find(std::uint64_t code) const {
    std::size_t slot = first_slot(code);
    for (; slots_[slot] != kNone; slot = (slot + 1) & (slots_.size() - 1)) {
      if (codes_[slots_[slot]] == code) return slots_[slot];
    }
    return kNone;
  }

  std::size_t size() const { return codes_.size(); }
  std::uint64_t code(std::uint32_t index) const { return codes_[index]; }
  std::uint64_t bytes() const {
    return codes_.capacity() * sizeof(std::uint64_t) + slots_.size() * sizeof(std::uint32_t);
  }

 private:
  static constexpr std::size_t kFirstSlots = 4096;

  std::size_t first_slot(std::uint64_t code) const {
    code ^= code >> 32;
    return (code * 0x9E3779B97F4A7C15ULL >> 20) & (slots_.size() - 1);
  }

  void grow() {
    slots_.assign(slots_.size() * 2, kNone);
    for (std::uint32_t index = 0; index < codes_.size(); ++index) {
      std::size_t slot = first_slot(codes_[index]);
      while (slots_[slot] != kNone) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = index;
    }
  }

  std::vector<std::uint32_t> slots_;
  std::vector<std::uint64_t> codes_;
};

}  // namespace zeroproof
