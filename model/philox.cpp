#include "zeroproof/internal/model/philox.h"

namespace zeroproof {
namespace {

using Block = std::array<std::uint32_t, 4>;

std::uint32_t low(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
std::uint32_t high(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32U);
}

// Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; 2011.
Block philox4x32(Block counter, std::uint64_t seed) {
  constexpr int kRounds = 10;
  std::uint32_t key0 = low(seed);
  std::uint32_t key1 = high(seed);
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {high(product1) ^ counter[1] ^ key0, low(product1),
               high(product0) ^ counter[3] ^ key1, low(product0)};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

// In float, as cuRAND: never 0, sometimes 1.
double uniform_of(std::uint32_t bits) {
  return static_cast<double>(static_cast<float>(bits) * 0x1p-32F + 0x1p-33F);
}

}  // namespace

std::array<double, 4> Philox::uniforms_of(std::uint64_t thread) const {
  const std::uint64_t block = offset / 4;
  const Block bits = philox4x32({low(block), high(block), low(thread), high(thread)}, seed);
  return {uniform_of(bits[0]), uniform_of(bits[1]), uniform_of(bits[2]), uniform_of(bits[3])};
}

}  // namespace zeroproof
