#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "zeroproof/internal/model/choice.h"

namespace zeroproof::hook_order {

// The states met, by fingerprint. What is new is seen in one place of memory.
class FingerprintTable {
 public:
  FingerprintTable() : slots_(kFirstSlots) {}

  // Brings the place of a state nearer, for who has something else to do before insert().
  void prefetch(const Fingerprint& state) const { __builtin_prefetch(&slots_[place_of(state)], 1); }

  // True when the state was not there.
  bool insert(const Fingerprint& state) {
    std::size_t at = place_of(state);
    for (; !is_free(slots_[at]); at = (at + 1) & (slots_.size() - 1))
      if (slots_[at] == state) return false;
    if (is_free(state)) return !std::exchange(has_free_, true);
    slots_[at] = state;
    if (++size_ * 10 > slots_.size() * 7) grow();
    return true;
  }

  std::size_t size() const { return size_ + (has_free_ ? 1 : 0); }
  std::uint64_t bytes() const { return slots_.size() * sizeof(Fingerprint); }

 private:
  static constexpr std::size_t kFirstSlots = 1024;

  static bool is_free(const Fingerprint& slot) { return slot == Fingerprint{}; }
  std::size_t place_of(const Fingerprint& state) const { return state.low & (slots_.size() - 1); }

  void grow() {
    std::vector<Fingerprint> before(slots_.size() * 2);
    before.swap(slots_);
    for (const Fingerprint& state : before) {
      if (is_free(state)) continue;
      std::size_t at = place_of(state);
      while (!is_free(slots_[at])) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = state;
    }
  }

  std::vector<Fingerprint> slots_;  // the zero fingerprint: free
  std::size_t size_ = 0;            // of slots_
  bool has_free_ = false;           // the zero fingerprint was met itself
};

}  // namespace zeroproof::hook_order
