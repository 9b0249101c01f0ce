#include "zeroproof/internal/model/mersenne_twister.h"

namespace zeroproof {

// Matsumoto, Nishimura: Mersenne Twister, 1998, with the initialization of 2002.
MersenneTwister::MersenneTwister(std::uint32_t seed) : words_{seed} {
  for (std::size_t i = 1; i < kWords; ++i)
    words_[i] =
        1812433253U * (words_[i - 1] ^ (words_[i - 1] >> 30U)) + static_cast<std::uint32_t>(i);
}

void MersenneTwister::refill() {
  constexpr std::size_t kShift = 397;
  for (std::size_t i = 0; i < kWords; ++i) {
    const std::uint32_t joined =
        (words_[i] & 0x80000000U) | (words_[(i + 1) % kWords] & 0x7fffffffU);
    const std::uint32_t twist = (joined & 1U) == 0 ? 0U : 0x9908b0dfU;
    words_[i] = words_[(i + kShift) % kWords] ^ (joined >> 1U) ^ twist;
  }
  next_ = 0;
}

std::uint32_t MersenneTwister::draw() {
  if (next_ == kWords) refill();
  std::uint32_t bits = words_[next_++];
  bits ^= bits >> 11U;
  bits ^= (bits << 7U) & 0x9d2c5680U;
  bits ^= (bits << 15U) & 0xefc60000U;
  return bits ^ (bits >> 18U);
}

}  // namespace zeroproof
