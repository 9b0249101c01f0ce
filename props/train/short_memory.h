#pragma once

#include <cstdint>

#include "props/train/runtime_decorator.h"
#include "zeroproof/internal/model/autograd_observer.h"

namespace zeroproof::train {

// A device that has no more memory at one allocation of an armed call. What has no elements needs
// none, and the host has enough. Not thread-safe; a rank's own.
class ShortMemory final : public Memory {
 public:
  explicit ShortMemory(Memory& inner) : inner_(inner) {}

  // The k-th from now on throws a RuntimeFault, as the runtime would; 0: none.
  void arm(int k) { left_ = k; }

  Tensor allocate(std::int64_t elements, DType dtype, Placement placement) override;
  MemoryStats stats(Placement placement) const override { return inner_.stats(placement); }
  void reset_peak() override { inner_.reset_peak(); }

 private:
  Memory& inner_;
  int left_ = 0;
};

// A rank's runtime with such a memory. Listening to its autograd it arms behind the outermost graph
// task, if it was told to: what an engine allocates then is its epilogue's.
class ShortRuntime final : public RuntimeDecorator, public GraphTaskListener {
 public:
  explicit ShortRuntime(Runtime& inner) : RuntimeDecorator(inner), memory_(inner.memory()) {}

  Memory& memory() override { return memory_; }

  void arm(int k) { memory_.arm(k); }
  void arm_behind_task(int k) { behind_task_ = k; }
  void disarm() { memory_.arm(behind_task_ = 0); }

  void on_graph_task_begin(GraphTaskId, bool) override { ++tasks_; }
  void on_graph_task_end(GraphTaskId, bool raised) override {
    if (--tasks_ == 0 && !raised && behind_task_ != 0) memory_.arm(behind_task_);
  }

 private:
  ShortMemory memory_;
  int behind_task_ = 0;
  int tasks_ = 0;
};

}  // namespace zeroproof::train
