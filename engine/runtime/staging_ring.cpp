#include "engine/runtime/staging_ring.h"

#include "model/check.h"

namespace zeroproof {

std::size_t StagingRing::take(std::size_t bytes, const std::function<void(StreamEvent)>& wait) {
  ZP_CHECK(bytes <= bytes_, "a copy of more than its staging");
  const std::size_t begin = next_ + bytes <= bytes_ ? next_ : 0;
  const std::size_t end = begin + bytes;
  const bool wraps = begin < next_;
  // The part past the ring's head, until it wraps, is older than what lies at its beginning.
  while (!parts_.empty()) {
    const Part& oldest = parts_.front();
    const bool is_skipped = wraps && oldest.begin >= next_;
    if (!is_skipped && (oldest.end <= begin || oldest.begin >= end)) break;
    if (!oldest.over.is_none()) wait(oldest.over);
    parts_.pop_front();
  }
  parts_.push_back({begin, end, {}});
  next_ = end;
  return begin;
}

void StagingRing::note_copy(StreamEvent end) {
  parts_.back().over = end;
}

}  // namespace zeroproof
