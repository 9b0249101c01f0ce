#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include "zeroproof/internal/engine/runtime/stream.h"

namespace zeroproof {

// Which part of a ring of bytes a copy may use next: parts are given one after the other, and each
// again once its copy is over.
class StagingRing {
 public:
  explicit StagingRing(std::size_t bytes) : bytes_(bytes) {}

  // Where the next part begins. `wait` is called for each copy that still uses it, the oldest
  // first. At most as many as the ring has.
  std::size_t take(std::size_t bytes, const std::function<void(StreamEvent)>& wait);
  // The copy of the part that was taken last is over with this event.
  void note_copy(StreamEvent end);

 private:
  struct Part {
    std::size_t begin;
    std::size_t end;
    StreamEvent over;
  };

  std::size_t bytes_;
  std::size_t next_ = 0;
  std::deque<Part> parts_;  // the oldest first
};

}  // namespace zeroproof
