#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/runtime/host/collective.h"
#include "zeroproof/internal/engine/runtime/stream.h"

namespace zeroproof::host {

// The collectives of a group that may not have completed, by number. What has completed is
// forgotten, so that a training of any length needs no more room. Thread-safe: who watches the rank
// asks too.
class IssuedCollectives {
 public:
  struct Issued {
    CollectiveOp op = CollectiveOp::barrier;
    DType dtype = DType::float32;
    std::int64_t elements = 0;
    StreamEvent completion = {};  // none: not queued yet
  };
  using IsOver = std::function<bool(StreamEvent)>;

  // Its number: one more than that of the last.
  std::int64_t add(const Collective& collective);
  // Of all from this number on.
  void complete(std::int64_t from, StreamEvent completion);
  // The oldest that have completed; `is_over` is asked about each until it says no.
  void forget(const IsOver& is_over);

  std::int64_t size() const;  // that were issued
  std::int64_t kept() const;
  // None: it was forgotten.
  std::optional<Issued> find(std::int64_t number) const;
  // Of those that are kept, with its number.
  std::optional<std::pair<std::int64_t, Issued>> oldest() const;

 private:
  std::int64_t end() const { return first_ + static_cast<std::int64_t>(kept_.size()); }

  mutable std::mutex mutex_;
  std::deque<Issued> kept_;
  std::int64_t first_ = 0;  // number of the first that is kept
};

}  // namespace zeroproof::host
