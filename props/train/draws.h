#pragma once

#include <cstdint>
#include <initializer_list>

#include "model/splitmix64.h"

namespace zeroproof::train {

// SplitMix64.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) { state_ = next() ^ (seed << 32U); }

  int below(int bound) { return static_cast<int>(next() % static_cast<std::uint64_t>(bound)); }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool one_in(int count) { return below(count) == 0; }
  int flag(int count) { return one_in(count) ? 1 : 0; }
  int of(std::initializer_list<int> values) {
    return *(values.begin() + below(static_cast<int>(values.size())));
  }

 private:
  std::uint64_t next() { return next_splitmix64(state_); }

  std::uint64_t state_;
};

}  // namespace zeroproof::train
