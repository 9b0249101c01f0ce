#pragma once

#include <memory>

#include "zeroproof/internal/engine/runtime/span.h"

namespace zeroproof::sim {

// A span that queued work will use later. It does not keep the memory: whether that is still there
// when the work runs is what the simulator looks at.
class HeldSpan {
 public:
  HeldSpan() = default;
  explicit HeldSpan(Span span);

  // False when the memory is gone. Else it is kept, and span() valid, until release().
  bool acquire();
  void release();
  Span span() const { return span_; }

 private:
  std::shared_ptr<TensorImpl> impl_;  // shape and place of the tensor, without its memory
  std::weak_ptr<Storage> storage_;
  Span span_;
};

}  // namespace zeroproof::sim
