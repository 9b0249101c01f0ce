#include "model/rng.h"

namespace zeroproof {

// Matsumoto, Nishimura: Mersenne Twister, 1998, with the initialization of 2002.
RngState::RngState(std::uint32_t seed) : words_{seed} {
  for (std::size_t i = 1; i < kWords; ++i)
    words_[i] =
        1812433253U * (words_[i - 1] ^ (words_[i - 1] >> 30U)) + static_cast<std::uint32_t>(i);
}

void RngState::refill() {
  constexpr std::size_t kShift = 397;
  for (std::size_t i = 0; i < kWords; ++i) {
    const std::uint32_t joined =
        (words_[i] & 0x80000000U) | (words_[(i + 1) % kWords] & 0x7fffffffU);
    const std::uint32_t twist = (joined & 1U) == 0 ? 0U : 0x9908b0dfU;
    words_[i] = words_[(i + kShift) % kWords] ^ (joined >> 1U) ^ twist;
  }
  next_ = 0;
}

std::uint32_t RngState::draw() {
  if (next_ == kWords) refill();
  std::uint32_t bits = words_[next_++];
  bits ^= bits >> 11U;
  bits ^= (bits << 7U) & 0x9d2c5680U;
  bits ^= (bits << 15U) & 0xefc60000U;
  return bits ^ (bits >> 18U);
}

void Rng::manual_seed(std::uint64_t seed) {
  seed_ = seed;
  generators_.clear();
}

RngState Rng::state(Device device) const {
  const auto at = generators_.find(device.accelerator);
  return at == generators_.end() ? RngState(static_cast<std::uint32_t>(seed_)) : at->second;
}

void Rng::set_state(Device device, const RngState& state) {
  generators_.insert_or_assign(device.accelerator, state);
}

RngState& Rng::generator(Device device) {
  return generators_.try_emplace(device.accelerator, static_cast<std::uint32_t>(seed_))
      .first->second;
}

std::uint32_t Rng::draw(Device device) {
  return generator(device).draw();
}

double Rng::uniform(Device device) {
  const std::uint64_t high = draw(device);
  const std::uint64_t bits = (high << 32U) | draw(device);
  return static_cast<double>(bits & ((std::uint64_t{1} << 53U) - 1)) * 0x1p-53;
}

RngFork::RngFork(Rng& rng, const std::vector<Device>& devices) : rng_(rng) {
  for (const Device device : devices) before_.emplace_back(device, rng.state(device));
}

RngFork::~RngFork() {
  for (const auto& [device, state] : before_) rng_.set_state(device, state);
}

}  // namespace zeroproof
