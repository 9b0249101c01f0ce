#pragma once

#include "zeroproof/internal/engine/runtime/span.h"
#include "zeroproof/internal/engine/runtime/stream.h"

namespace zeroproof {

// One use of memory by work on a stream.
struct Access {
  Span span;
  StreamId stream;
  bool is_write = false;
};

// What happens between streams and memory, for race detection. Called in the order of the host's
// calls; a span is valid during the call.
class AccessObserver {
 public:
  virtual ~AccessObserver() = default;
  virtual void on_access(const Access& access) = 0;
  virtual void on_record(StreamId stream, StreamEvent event) = 0;
  virtual void on_wait(StreamId stream, StreamEvent event) = 0;
  virtual void on_host_wait(StreamEvent event) = 0;
  // Stream::record_use of the whole tensor.
  virtual void on_record_use(StreamId stream, const TensorImpl& tensor) = 0;
  // Memory of Memory::allocate goes back to its pool, whose next user may be at work at once: the
  // last tensor on it is gone. The storage is known by its address, which may come again, and by
  // no other event; the call must not throw.
  virtual void on_free(const Storage& storage) = 0;
};

}  // namespace zeroproof
