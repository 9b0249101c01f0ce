#pragma once

#include "engine/runtime/span.h"
#include "engine/runtime/stream.h"

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
  virtual void on_record_use(StreamId, const TensorImpl&) {}
  // The memory goes back to the pool of the stream that it was allocated on, whose later work may
  // use it at once.
  virtual void on_free(StreamId, const TensorImpl&) {}
};

}  // namespace zeroproof
