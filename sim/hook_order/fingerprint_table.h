#pragma once

#include <cstdint>
#include <vector>

#include "model/choice.h"

namespace zeroproof::hook_order {

// The states met, by fingerprint, numbered 0, 1, 2, ... in the order in which they came.
class FingerprintTable {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  FingerprintTable() : slots_(kFirstSlots, kNone) {}

  struct Inserted {
    std::uint32_t index = 0;
    bool is_new = false;
  };
  Inserted insert(const Fingerprint& state) {
    std::size_t slot = state.low & (slots_.size() - 1);
    for (; slots_[slot] != kNone; slot = (slot + 1) & (slots_.size() - 1))
      if (states_[slots_[slot]] == state) return {slots_[slot], false};
    const auto index = static_cast<std::uint32_t>(states_.size());
    slots_[slot] = index;
    states_.push_back(state);
    if (states_.size() * 10 > slots_.size() * 7) grow();
    return {index, true};
  }

  std::size_t size() const { return states_.size(); }
  std::uint64_t bytes() const {
    return states_.capacity() * sizeof(Fingerprint) + slots_.size() * sizeof(std::uint32_t);
  }

 private:
  static constexpr std::size_t kFirstSlots = 1024;

  void grow() {
    slots_.assign(slots_.size() * 2, kNone);
    for (std::uint32_t index = 0; index < states_.size(); ++index) {
      std::size_t slot = states_[index].low & (slots_.size() - 1);
      while (slots_[slot] != kNone) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = index;
    }
  }

  std::vector<std::uint32_t> slots_;
  std::vector<Fingerprint> states_;
};

}  // namespace zeroproof::hook_order
