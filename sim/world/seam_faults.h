#pragma once

#include <cstdint>

namespace zeroproof::sim {

// The calls that can fail below the engine.
enum class SeamCall : std::uint8_t { collective, allocation };

// Lets calls fail; reached once for each of them, before it does anything.
class SeamFaults {
 public:
  virtual ~SeamFaults() = default;
  // A RuntimeFault from a collective is the group's: no call of any rank succeeds there any more.
  virtual void reach(int rank, SeamCall call) = 0;
  // Of what is still to fail: a part of the state of the world.
  virtual std::uint64_t fingerprint() const = 0;
};

}  // namespace zeroproof::sim
