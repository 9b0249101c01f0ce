#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeroproof/internal/model/autocast/cast_cache.h"
#include "zeroproof/internal/model/graph_task.h"
#include "zeroproof/internal/model/local_state.h"
#include "zeroproof/internal/model/ready_queue.h"
#include "zeroproof/model/device.h"

namespace zeroproof {

enum class GradThreadKind : std::uint8_t {
  caller,  // runs a program and drives its own graph tasks
  pool,    // takes over from a thread that is 60 nested calls deep (rule R4)
  device,  // runs whatever is ready for its accelerator (rule Q4)
};

// One simulated thread: what PyTorch keeps thread-local.
struct GradThread {
  using Queue = ReadyQueue<NodeTask>;

  std::int32_t index = 0;
  GradThreadKind kind = GradThreadKind::caller;
  Device device;                       // of a device thread
  std::uint64_t next_sequence_nr = 0;  // rules N2, N3
  LocalState own_local;
  LocalState* local = &own_local;  // or that of the node it runs
  AutocastNesting autocast;
  std::vector<StreamIndex> streams;  // current one of each accelerator; missing ones are 0
  std::shared_ptr<Queue> queue = std::make_shared<Queue>();

  GraphTask* current_task = nullptr;   // of the node or callback that runs here (rule G1)
  const Node* current_node = nullptr;  // null in a callback
  bool has_exposed_buffer = false;     // the node got one of input_grad_buffers()
  bool is_checkpoint_valid = true;     // no task it works for was given inputs (rule K2)
  bool is_in_node = false;             // in the middle of one: cannot take another
  std::int32_t drives = 0;             // graph tasks it waits for
  std::int32_t nested_drives = 0;      // of them, started by what it ran itself (rule R4)
  std::int32_t total_depth = 0;        // reentrant depth of the innermost of these

  GradThread() = default;
  GradThread(const GradThread&) = delete;
  GradThread& operator=(const GradThread&) = delete;

  // Whether a backward it starts is a nested one (rule R1).
  bool is_worker() const { return kind == GradThreadKind::device || drives > 0; }
  bool can_take_a_node() const { return is_worker() && !is_in_node && !queue->is_empty(); }
};

// What a thread is while it runs a node of `task`, and again what it was before.
class NodeScope {
 public:
  NodeScope(GradThread& worker, GraphTask& task, const Node& node)
      : worker_(worker),
        local_(task.options().local),
        local_before_(std::exchange(worker.local, &local_)),
        task_(std::exchange(worker.current_task, &task)),
        node_(std::exchange(worker.current_node, &node)),
        has_exposed_buffer_(std::exchange(worker.has_exposed_buffer, false)),
        is_in_node_(std::exchange(worker.is_in_node, true)),
        is_checkpoint_valid_(worker.is_checkpoint_valid) {
    if (task.is_limited()) worker.is_checkpoint_valid = false;
  }
  ~NodeScope() {
    worker_.local = local_before_;
    worker_.current_task = task_;
    worker_.current_node = node_;
    worker_.has_exposed_buffer = has_exposed_buffer_;
    worker_.is_in_node = is_in_node_;
    worker_.is_checkpoint_valid = is_checkpoint_valid_;
  }
  NodeScope(const NodeScope&) = delete;
  NodeScope& operator=(const NodeScope&) = delete;

 private:
  GradThread& worker_;
  LocalState local_;  // a copy: what a hook sets, the next node does not see
  LocalState* local_before_;
  GraphTask* task_;
  const Node* node_;
  bool has_exposed_buffer_;
  bool is_in_node_;
  bool is_checkpoint_valid_;
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
