#include "zeroproof/internal/model/rng.h"

namespace zeroproof {
namespace {

RngState seeded(Device device, std::uint64_t seed) {
  if (device.is_cpu()) return MersenneTwister(static_cast<std::uint32_t>(seed));
  return Philox{.seed = seed};
}

double uniform(MersenneTwister& generator, DType dtype) {
  if (dtype != DType::float64)
    return static_cast<double>(generator.draw() & ((1U << 24U) - 1)) * 0x1p-24;
  const std::uint64_t high = generator.draw();
  const std::uint64_t bits = (high << 32U) | generator.draw();
  return static_cast<double>(bits & ((std::uint64_t{1} << 53U) - 1)) * 0x1p-53;
}

// A thread takes four, two or one neighbouring elements: as many as leave no rest.
std::vector<double> uniforms_of_launch(Philox& generator, std::size_t count) {
  const std::size_t width = count % 4 == 0 ? 4 : (count % 2 == 0 ? 2 : 1);
  std::vector<double> numbers;
  numbers.reserve(count);
  for (std::size_t thread = 0; thread < count / width; ++thread) {
    const std::array<double, 4> drawn = generator.uniforms_of(thread);
    numbers.insert(numbers.end(), drawn.begin(),
                   drawn.begin() + static_cast<std::ptrdiff_t>(width));
  }
  generator.offset += 4;
  return numbers;
}

}  // namespace

void Rng::manual_seed(std::uint64_t seed) {
  seed_ = seed;
  generators_.clear();
}

RngState Rng::state(Device device) const {
  const auto at = generators_.find(device.accelerator);
  return at == generators_.end() ? seeded(device, seed_) : at->second;
}

void Rng::set_state(Device device, const RngState& state) {
  generators_.insert_or_assign(device.accelerator, state);
}

std::vector<double> Rng::uniforms(Device device, std::size_t count, DType dtype) {
  RngState& state =
      generators_.try_emplace(device.accelerator, seeded(device, seed_)).first->second;
  if (auto* philox = std::get_if<Philox>(&state)) return uniforms_of_launch(*philox, count);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = uniform(std::get<MersenneTwister>(state), dtype);
  return numbers;
}

RngFork::RngFork(Rng& rng, const std::vector<Device>& devices) : rng_(rng) {
  for (const Device device : devices) before_.emplace_back(device, rng.state(device));
}

RngFork::~RngFork() {
  for (const auto& [device, state] : before_) rng_.set_state(device, state);
}

}  // namespace zeroproof
