#pragma once

#include <cstdint>
#include <string>

#include "sim/world/finding.h"
#include "sim/world/seam_faults.h"
#include "zeroproof/internal/engine/runtime/stream.h"

namespace zeroproof::sim {

enum class SeamOp : std::uint8_t {
  record,
  wait,
  query,
  synchronize,
  kernel,
  collective,
  completed
};

// What a rank is about to do, for the hash of the execution.
struct SeamStep {
  SeamOp op = SeamOp::kernel;
  std::int32_t stream = 0;
  std::int64_t subject = 0;  // the event, or how many elements
};

// What the seam calls of one rank ask of the world that runs it. Called on the rank's fiber.
class RankControl {
 public:
  virtual ~RankControl() = default;

  // A call that others may see: before it, anybody may go on (Preemption). Throws when the
  // execution is being ended.
  virtual void step(const SeamStep& call) = 0;
  // Returns when the event has been reached. Throws RuntimeFault when it never will be.
  virtual void block_on(StreamEvent event) = 0;
  // Where a fault can come from below the engine. Throws what has been planned there.
  virtual void reach(SeamCall call) = 0;
  // A value that the rank got from the world, for the fingerprint of its history.
  virtual void note(std::uint64_t value) = 0;
  // How far queued work is, as the rank hears it: not in worlds where only ranks are chosen among.
  virtual void note_progress(bool is_done) = 0;
  virtual void report(FindingKind kind, std::string text) = 0;
  virtual int rank() const = 0;
  virtual std::uint64_t steps() const = 0;  // of the world so far
};

}  // namespace zeroproof::sim
