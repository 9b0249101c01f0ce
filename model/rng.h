#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/device.h"

namespace zeroproof {

// Where a generator stands. Equal states draw equal numbers.
struct RngState {
  std::uint64_t seed = 0;
  std::uint64_t drawn = 0;
  friend bool operator==(const RngState&, const RngState&) = default;
};

// The random numbers of one process: a generator for each device, as in PyTorch, but not
// PyTorch's numbers. No graph task carries it along (autograd_semantics section 15).
class Rng {
 public:
  // All generators start again, those of devices not used so far included.
  void manual_seed(std::uint64_t seed);

  RngState state(Device device) const;
  void set_state(Device device, RngState state);

  // The next number of the device, in [0, 1).
  double uniform(Device device);

 private:
  std::uint64_t seed_ = 0;
  std::map<std::int16_t, RngState> states_;  // of devices that left the seed behind
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
