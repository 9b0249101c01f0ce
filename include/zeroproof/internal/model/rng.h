#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "zeroproof/internal/model/mersenne_twister.h"
#include "zeroproof/internal/model/philox.h"
#include "zeroproof/model/device.h"
#include "zeroproof/model/dtype.h"

namespace zeroproof {

// Where a generator stands: of the CPU, or of an accelerator. Equal states draw equal numbers.
using RngState = std::variant<MersenneTwister, Philox>;

// The random numbers of one process, a generator for each device, drawing what PyTorch draws for
// the same seed. No graph task carries them along (docs/spec/autograd.md 15).
class Rng {
 public:
  // All generators start again, those of devices not used so far included.
  void manual_seed(std::uint64_t seed);

  RngState state(Device device) const;
  void set_state(Device device, const RngState& state);

  // On the CPU torch.rand's, in [0, 1), which draws twice for a float64. On an accelerator those
  // of a dropout kernel, in (0, 1], while its threads all run at once: up to 270,336 on an H200.
  std::vector<double> uniforms(Device device, std::size_t count, DType dtype = DType::float64);

 private:
  std::uint64_t seed_ = 67280421310721;          // PyTorch's default
  std::map<std::int16_t, RngState> generators_;  // of devices that have drawn since the seed
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
