#pragma once

#include <cstdint>

#include "zeroproof/internal/model/choice.h"

namespace zeroproof::sim {

// A hash of a sequence, one word at a time: what a rank has been through.
class History {
 public:
  void add(std::uint64_t word) {
    low_ = mix(low_ ^ (word + kLow));
    high_ = mix(high_ + (word ^ kHigh));
  }
  Fingerprint value() const { return {low_, high_}; }

 private:
  static constexpr std::uint64_t kLow = 0x9e3779b97f4a7c15U;
  static constexpr std::uint64_t kHigh = 0xd1b54a32d192ed03U;

  // The finalizer of SplitMix64: a bijection, so that no word is lost.
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

  std::uint64_t low_ = 0;
  std::uint64_t high_ = 0;
};

}  // namespace zeroproof::sim
