#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/device.h"

namespace zeroproof {

// Where a generator stands: a Mersenne Twister 19937, as PyTorch's on the CPU. Equal states draw
// equal numbers.
class RngState {
 public:
  explicit RngState(std::uint32_t seed);
  std::uint32_t draw();
  friend bool operator==(const RngState&, const RngState&) = default;

 private:
  static constexpr std::size_t kWords = 624;
  void refill();

  std::array<std::uint32_t, kWords> words_;
  std::size_t next_ = kWords;
};

// The random numbers of one process, a generator for each device. The CPU's numbers are those of
// PyTorch for the same seed, an accelerator's are not. No graph task carries them along
// (autograd_semantics section 15).
class Rng {
 public:
  // All generators start again, those of devices not used so far included.
  void manual_seed(std::uint64_t seed);

  RngState state(Device device) const;
  void set_state(Device device, const RngState& state);

  std::uint32_t draw(Device device);  // 32 bits
  double uniform(Device device);      // in [0, 1), of two draws: torch.rand in float64

 private:
  RngState& generator(Device device);

  std::uint64_t seed_ = 67280421310721;          // PyTorch's default
  std::map<std::int16_t, RngState> generators_;  // of devices that left the seed behind
};

// Whatever is drawn meanwhile, afterwards the generators of `devices` stand where they stood.
class RngFork {
 public:
  RngFork(Rng& rng, const std::vector<Device>& devices);
  ~RngFork();
  RngFork(const RngFork&) = delete;
  RngFork& operator=(const RngFork&) = delete;

 private:
  Rng& rng_;
  std::vector<std::pair<Device, RngState>> before_;
};

}  // namespace zeroproof
