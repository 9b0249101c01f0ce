#pragma once

#include <functional>
#include <memory>

namespace zeroproof {

// Device work that was captured, to be queued again by one call. Every time it uses the memory that
// it used when it was captured. Must not outlive the runtime.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  // After all that is queued on any stream; what is queued later runs after it. The first replay
  // is the work as it was captured; AdamUpdate::step counts on from each to the next.
  virtual void replay() = 0;
};

// Of a runtime whose device takes a whole iteration at once (a CUDA graph).
class GraphCapture {
 public:
  virtual ~GraphCapture() = default;

  // Whether what is queued now is captured in place of being done: no number of it can be read.
  virtual bool is_capturing() const = 0;
  // Runs `work` on the host; what it queues becomes the graph. The same work has run before, so
  // that all that is made on first use is there. RuntimeFault where a replay could not do the same:
  // the host reads from the device or writes to it, or memory from before is given back.
  virtual std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work) = 0;
};

}  // namespace zeroproof
