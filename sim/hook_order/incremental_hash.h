#pragma once

#include <cstdint>

#include "zeroproof/internal/model/choice.h"

namespace zeroproof::hook_order {

// A state as the sum of what is the case: facts come and go in any order, and equal sets of facts
// have equal sums. Each fact is a place and what is there.
class IncrementalHash {
 public:
  void add(std::uint64_t place, std::uint64_t value) {
    sum_.low += low_of(place, value);
    sum_.high += high_of(place, value);
  }
  void remove(std::uint64_t place, std::uint64_t value) {
    sum_.low -= low_of(place, value);
    sum_.high -= high_of(place, value);
  }
  void add_all(const Fingerprint& facts) {
    sum_.low += facts.low;
    sum_.high += facts.high;
  }
  void remove_all(const Fingerprint& facts) {
    sum_.low -= facts.low;
    sum_.high -= facts.high;
  }
  void clear() { sum_ = {}; }
  const Fingerprint& sum() const { return sum_; }

 private:
  __extension__ using Wide = unsigned __int128;

  // Both halves of the product of two words, folded: no bit of either is far from all of it.
  static std::uint64_t fold(std::uint64_t left, std::uint64_t right) {
    const Wide product = static_cast<Wide>(left) * right;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  static std::uint64_t low_of(std::uint64_t place, std::uint64_t value) {
    return fold(place * 0x9e3779b97f4a7c15U ^ 0xa0761d6478bd642fU, value ^ 0xe7037ed1a0b428dbU);
  }
  static std::uint64_t high_of(std::uint64_t place, std::uint64_t value) {
    return fold(place * 0xd1b54a32d192ed03U ^ 0x8ebc6af09c88c6e3U, value ^ 0x589965cc75374cc3U);
  }

  Fingerprint sum_;
};

}  // namespace zeroproof::hook_order
