#pragma once

#include <cstdint>
#include <memory>

#include "model/graph_task.h"
#include "model/ready_queue.h"

namespace zeroproof {

// One simulated thread: what PyTorch keeps thread-local.
struct GradThread {
  using Queue = ReadyQueue<NodeTask>;

  std::int32_t index = 0;
  std::uint64_t next_sequence_nr = 0;  // rules N2, N3
  bool is_grad_enabled = true;
  std::shared_ptr<Queue> queue = std::make_shared<Queue>();
  std::shared_ptr<GraphTask> current_task;  // of the node or callback that runs here (rule G1)
  std::int32_t drives = 0;                  // graph tasks this thread works for (rule R4)
  std::int32_t task_depth = 0;              // reentrant depth of the innermost of them
};

// A member that has another value for a while.
template <class T>
class Holding {
 public:
  Holding(T& place, T value) : place_(place), before_(std::exchange(place, std::move(value))) {}
  ~Holding() { place_ = std::move(before_); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

 private:
  T& place_;
  T before_;
};

}  // namespace zeroproof
