#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace zeroproof {

// A Mersenne Twister 19937, as PyTorch's generator on the CPU. Equal states draw equal numbers.
class MersenneTwister {
 public:
  explicit MersenneTwister(std::uint32_t seed);
  std::uint32_t draw();
  friend bool operator==(const MersenneTwister&, const MersenneTwister&) = default;

 private:
  static constexpr std::size_t kWords = 624;
  void refill();

  std::array<std::uint32_t, kWords> words_;
  std::size_t next_ = kWords;
};

}  // namespace zeroproof
