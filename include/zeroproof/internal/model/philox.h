#pragma once

#include <array>
#include <cstdint>

namespace zeroproof {

// Philox 4x32-10, the counter-based generator of PyTorch's CUDA kernels: every thread of a launch
// has a sequence of its own, and a launch moves the generator on for all of them.
struct Philox {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;  // numbers that every thread has drawn so far, a multiple of 4

  // The next four numbers of one thread, in (0, 1] as cuRAND makes floats of them.
  std::array<double, 4> uniforms_of(std::uint64_t thread) const;
  friend bool operator==(const Philox&, const Philox&) = default;
};

}  // namespace zeroproof
