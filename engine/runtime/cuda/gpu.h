#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/runtime/cuda/graph_arena.h"
#include "engine/runtime/cuda/stream_pool.h"
#include "engine/runtime/staging_ring.h"
#include "engine/runtime/watchdog.h"
#include "zeroproof/internal/engine/runtime/stream.h"

namespace zeroproof::cuda {

// One GPU as one rank uses it: its queues and the events recorded on them. Used by one thread at a
// time; tensors keep it alive. What CUDA refuses is a RuntimeFault.
class Gpu {
 public:
  explicit Gpu(int ordinal);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  int ordinal() const { return ordinal_; }
  void make_current() const;  // for the calling thread
  // For work that comes now: what was put off goes first.
  cudaStream_t queue(StreamRole role) {
    flush_deferred();
    note_work(handle(role));
    return handle(role);
  }
  cudaStream_t compute() { return queue(StreamRole::compute); }
  // To distinguish queues, and for memory that no deferred work uses.
  cudaStream_t handle(StreamRole role) const { return queues_[static_cast<std::size_t>(role)]; }
  cudaStream_t compute_handle() const { return handle(StreamRole::compute); }
  // Work that goes before what was put off, on a handle().
  void note_work(cudaStream_t queue) {
    if (queue == compute_handle()) ready_point_ = {};
  }

  // Work on the compute stream that what comes next may still join: it is queued when somebody asks
  // for a queue or an event, and keeps alive what it uses. At most one: an earlier one is queued.
  // `memory`: every Storage that it uses, or empty where no work may go before it.
  void defer(std::function<void()> work, std::vector<const void*> memory = {});
  // What uses these alone may go before it.
  bool may_overtake(const void* storage, const void* other) const;
  void flush_deferred() {
    if (put_off_) run_put_off();
  }
  void forget_put_off() { put_off_ = nullptr; }

  StreamEvent record(cudaStream_t queue) {
    flush_deferred();
    note_work(queue);
    ++marks_[role_of(queue)];
    return record_before_deferred(queue, marks_[role_of(queue)]);
  }
  void wait(cudaStream_t queue, StreamEvent event) {
    flush_deferred();
    wait_ahead(queue, event);
  }
  // Before what was put off: for memory that it does not use.
  StreamEvent record_before_deferred(cudaStream_t queue) {
    return record_before_deferred(queue, 0);
  }
  void wait_ahead(cudaStream_t queue, StreamEvent event);
  // What the compute stream has so far, before what was put off: one event until more comes.
  StreamEvent ready_point();
  // How many points of a queue were recorded so far; and whether the compute stream, or the host,
  // has waited for a later one: what was queued before it is over for what comes.
  std::int64_t marks_of(cudaStream_t queue) const { return marks_[role_of(queue)]; }
  bool is_awaited(std::size_t role, std::int64_t marks) const { return awaited_[role] > marks; }
  // The same, or the GPU has come to such a point.
  bool is_over(std::size_t role, std::int64_t marks);
  // Which role's queue it is; CheckFailed for another GPU's.
  std::size_t role_of(cudaStream_t queue) const;
  static constexpr std::size_t kRoles = 4;
  // Whether every queue has done its work, or failed. From any thread.
  bool is_idle() const;
  // What is queued on `after` from now on runs after everything on `before`.
  void order(cudaStream_t before, cudaStream_t after);
  bool query(StreamEvent event);
  // Known to be complete without a call of CUDA's.
  bool is_recycled(StreamEvent event) const { return event.value >= 0 && event.value < first_; }
  // Of the host's memory, which kernels write to; read after the work that wrote it.
  static constexpr std::int64_t kInboxDoubles = 4096;
  double* inbox() const { return inbox_; }
  // The host waits; `while_waiting` hears now and then how long it has, and may throw.
  void synchronize(StreamEvent event);
  std::function<void(std::int64_t waited_ms)> while_waiting;
  // Of the rank at work; null: its calls are not watched.
  Watchdog* watchdog = nullptr;

  // Copies of the host's bytes to the GPU on a queue, through pinned memory: the host waits for
  // earlier copies at most.
  void copy_from_host(void* to, const void* from, std::size_t bytes, cudaStream_t queue);

  // From begin to end what is queued on any stream is captured in place of being done. Everything
  // before is done by then, so its events delay no stream, and memory comes from `arena`. A caller
  // that asks for the events of the capture hears that they are complete: a replay is.
  void begin_capture(std::shared_ptr<GraphArena> arena);
  cudaGraph_t end_capture();  // null where CUDA could not capture something
  bool is_capturing() const { return arena_ != nullptr; }
  const std::shared_ptr<GraphArena>& arena() const { return arena_; }
  // RuntimeFault while something is captured, for what the host alone can do.
  void refuse_capture(const std::string& what) const;
  // `free` memory from before it, once the capture is over: a replay would not find it.
  void free_after_capture(std::function<void()> free);
  bool has_freed_earlier_memory() const { return !freed_.empty(); }
  // Of its pool, in the order of the compute stream.
  KeptMemory& memory() { return memory_; }
  StreamPool& pool() { return pool_; }
  // All streams in one order: before and after a replay on the compute stream.
  void join_queues();
  void fork_queues();

 private:
  static constexpr std::size_t kKeptEvents = 256;
  static constexpr std::size_t kRecycledEvents = 128;

  struct Mark {
    cudaEvent_t event;
    std::size_t role;     // of the queue
    std::int64_t number;  // from 1 on, of the queue; 0: before what was put off
  };

  StreamEvent record_before_deferred(cudaStream_t queue, std::int64_t number);
  const Mark* mark(StreamEvent event) const;  // null: complete, and recycled since
  void note_awaited(const Mark& mark);
  void recycle();
  bool is_over(std::size_t events) const;
  void run_put_off();

  int ordinal_;
  std::array<cudaStream_t, kRoles> queues_{};
  double* inbox_ = nullptr;
  static constexpr std::size_t kStagedBytes = std::size_t{4} << 20;
  std::byte* staged_ = nullptr;  // pinned
  StagingRing staging_{kStagedBytes};
  std::function<void()> put_off_;
  std::vector<const void*> put_off_memory_;
  std::deque<Mark> events_;  // of numbers from first_ on
  std::array<std::int64_t, kRoles> marks_{};
  std::array<std::int64_t, kRoles> awaited_{};  // by the compute stream or the host
  std::array<std::int64_t, kRoles> reached_{};  // by the GPU, as far as somebody has looked
  // By who waited, and for whom: earlier events than this need no wait.
  std::array<std::array<std::int64_t, kRoles>, kRoles> waited_before_{};
  StreamEvent ready_point_;  // none: the compute stream has had work since
  std::vector<cudaEvent_t> spare_;
  std::int64_t first_ = 0;
  std::size_t recycled_at_ = kKeptEvents + kRecycledEvents;  // so many events
  std::shared_ptr<GraphArena> arena_;  // of what is being captured; null: no capture
  std::int64_t first_captured_ = 0;    // event
  std::vector<std::function<void()>> freed_;
  StreamPool pool_{*this};
  KeptMemory memory_{pool_};
};

}  // namespace zeroproof::cuda
