#pragma once

#include <cstdint>

namespace zeroproof {

// The next number of a SplitMix64 stream (Steele, Lea and Flood, Fast splittable pseudorandom
// number generators, OOPSLA 2014): the same on every machine.
inline std::uint64_t next_splitmix64(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

}  // namespace zeroproof
