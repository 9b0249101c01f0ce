#pragma once

#include <cstdint>
#include <string>

#include "engine/runtime/stream.h"
#include "sim/world/finding.h"

namespace zeroproof::sim {

// What the seam calls of one rank ask of the world that runs it. Called on the rank's fiber.
class RankControl {
 public:
  virtual ~RankControl() = default;

  // A call that others may see: before it, anybody may go on (Preemption). Throws when the
  // execution is being ended.
  virtual void step() = 0;
  // Returns when the event has been reached. Throws RuntimeFault when it never will be.
  virtual void block_on(StreamEvent event) = 0;
  // A value that the rank got from the world, for the fingerprint of its history.
  virtual void note(std::uint64_t value) = 0;
  virtual void report(FindingKind kind, std::string text) = 0;
  virtual int rank() const = 0;
  virtual std::uint64_t steps() const = 0;  // of the world so far
};

}  // namespace zeroproof::sim
