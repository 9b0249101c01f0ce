#pragma once

#include <cstdint>

#include "zeroproof/internal/engine/runtime/span.h"
#include "zeroproof/model/ids.h"

namespace zeroproof {

using StreamId = StrongId<struct StreamTag>;                  // one queue of a rank
using StreamEvent = StrongId<struct EventTag, std::int64_t>;  // a recorded point of a queue

// What the engine uses queues for. With overlap_comm off, all are the compute stream.
enum class StreamRole : std::uint8_t { compute, reduction, all_gather, offload };

// A queue of device work: what is queued runs in order; only waits order two queues. The
// host runtime runs work when it is queued; the simulator completes it when its Chooser says so.
// Used by the rank that owns it.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual StreamId id() const = 0;

  // A point after everything queued here so far.
  virtual StreamEvent record() = 0;
  // What is queued here from now on runs after that point. The host does not wait.
  virtual void wait(StreamEvent event) = 0;
  // The same for everything queued on `other` so far.
  void wait(Stream& other) { wait(other.record()); }
  // Whether everything up to the point has run.
  virtual bool query(StreamEvent event) = 0;

  // The host waits. Throws RuntimeFault for what failed meanwhile.
  virtual void synchronize(StreamEvent event) = 0;
  void synchronize() { synchronize(record()); }

  // The memory of `tensor` may be freed by its owner and still be in use here (record_stream).
  virtual void record_use(const Tensor& tensor) = 0;
};

}  // namespace zeroproof
