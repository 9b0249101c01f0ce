#include "model/rng.h"

namespace zeroproof {
namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

constexpr std::uint64_t kGoldenGamma = 0x9e3779b97f4a7c15U;

}  // namespace

void Rng::manual_seed(std::uint64_t seed) {
  seed_ = seed;
  states_.clear();
}

RngState Rng::state(Device device) const {
  const auto at = states_.find(device.accelerator);
  return at == states_.end() ? RngState{seed_, 0} : at->second;
}

void Rng::set_state(Device device, RngState state) {
  states_[device.accelerator] = state;
}

double Rng::uniform(Device device) {
  RngState state = this->state(device);
  ++state.drawn;
  set_state(device, state);
  const std::uint64_t bits = mix(mix(state.seed + kGoldenGamma) + state.drawn * kGoldenGamma);
  return static_cast<double>(bits >> 11U) * 0x1p-53;
}

RngFork::RngFork(Rng& rng, const std::vector<Device>& devices) : rng_(rng) {
  for (const Device device : devices) before_.emplace_back(device, rng.state(device));
}

RngFork::~RngFork() {
  for (const auto& [device, state] : before_) rng_.set_state(device, state);
}

}  // namespace zeroproof
