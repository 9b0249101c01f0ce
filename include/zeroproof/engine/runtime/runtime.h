#pragma once

#include <optional>
#include <string>

#include "zeroproof/engine/runtime/fault.h"
#include "zeroproof/internal/engine/runtime/clock.h"
#include "zeroproof/internal/engine/runtime/graph_capture.h"
#include "zeroproof/internal/engine/runtime/kernels.h"
#include "zeroproof/internal/engine/runtime/memory.h"
#include "zeroproof/internal/engine/runtime/process_group.h"
#include "zeroproof/internal/engine/runtime/stream.h"
#include "zeroproof/internal/model/ops.h"
#include "zeroproof/model/device.h"

namespace zeroproof {

class Journal;

// The seam: all that differs between simulator, host and GPU, one object a rank. The engine
// never blocks, allocates device memory, communicates or reads a clock but through it. Outlives
// the engines that use it; used by its own rank only.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  virtual Device device() const = 0;  // where parameters and flat buffers live

  virtual Clock& clock() = 0;
  virtual Memory& memory() = 0;
  virtual Kernels& kernels() = 0;
  virtual const Ops& ops() const = 0;  // of the model's own arithmetic

  virtual Stream& stream(StreamRole role) = 0;
  // The stream that is number `index` on the autograd's current device; 0: compute.
  virtual Stream& user_stream(StreamIndex index) = 0;
  // One of a single rank where the job has no such group.
  virtual ProcessGroup& group(GroupKind kind) = 0;

  // Null where work is done when it is queued, without capture.
  virtual GraphCapture* graphs() = 0;

  // An error of work that was not waited for yet; it is reported once.
  virtual std::optional<std::string> poll_error() = 0;

  // Where events go; null without a recorder. Faults are reached either way.
  virtual Journal* journal() = 0;
  virtual FaultPoint* faults() = 0;  // null for none
};

}  // namespace zeroproof
