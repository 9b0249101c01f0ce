#include "engine/runtime/cuda/gpu.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>

#include "engine/runtime/cuda/check.h"
#include "model/check.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::cuda {

Gpu::Gpu(int ordinal) : ordinal_(ordinal) {
  make_current();
  int least = 0;
  int greatest = 0;
  ZP_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  for (std::size_t role = 0; role < kRoles; ++role) {
    // Communication goes first: the arithmetic beside it fills what is left.
    const bool is_compute = static_cast<StreamRole>(role) == StreamRole::compute;
    ZP_CUDA(cudaStreamCreateWithPriority(&queues_[role], cudaStreamNonBlocking,
                                         is_compute ? least : greatest));
  }
  ZP_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&inbox_), kInboxDoubles * sizeof(double),
                        cudaHostAllocDefault));
  ZP_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&staged_), kStagedBytes, cudaHostAllocDefault));
  // Freed memory stays with the pool: an iteration asks for the same again.
  cudaMemPool_t pool = nullptr;
  ZP_CUDA(cudaDeviceGetDefaultMemPool(&pool, ordinal));
  std::uint64_t threshold = std::numeric_limits<std::uint64_t>::max();
  ZP_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
}

// Errors cannot be reported here.
Gpu::~Gpu() {
  cudaSetDevice(ordinal_);
  for (cudaStream_t queue : queues_)
    if (queue != nullptr) cudaStreamSynchronize(queue);
  memory_.clear();
  cudaFreeHost(inbox_);
  cudaFreeHost(staged_);
  for (const Mark& mark : events_) cudaEventDestroy(mark.event);
  for (cudaEvent_t event : spare_) cudaEventDestroy(event);
  for (cudaStream_t queue : queues_)
    if (queue != nullptr) cudaStreamDestroy(queue);
}

void Gpu::begin_capture(std::shared_ptr<GraphArena> arena) {
  make_current();
  for (cudaStream_t queue : queues_) synchronize(record(queue));
  memory_.clear();  // the graph has memory of its own
  waited_before_ = {};
  freed_.clear();
  first_captured_ = first_ + static_cast<std::int64_t>(events_.size());
  ZP_CUDA(cudaStreamBeginCapture(compute(), cudaStreamCaptureModeThreadLocal));
  arena_ = std::move(arena);
  fork_queues();
}

cudaGraph_t Gpu::end_capture() {
  cudaGraph_t graph = nullptr;
  try {
    join_queues();
  } catch (const RuntimeFault&) {
    forget_put_off();  // CUDA says below that no work was captured
  }
  const bool is_captured =
      cudaStreamEndCapture(compute_handle(), &graph) == cudaSuccess && graph != nullptr;
  arena_ = nullptr;
  waited_before_ = {};
  for (auto i = static_cast<std::size_t>(first_captured_ - first_); i < events_.size(); ++i)
    if (cudaEvent_t event = std::exchange(events_[i].event, nullptr)) cudaEventDestroy(event);
  for (const std::function<void()>& free : freed_) free();
  cudaGetLastError();
  return is_captured ? graph : nullptr;
}

void Gpu::refuse_capture(const std::string& what) const {
  if (is_capturing())
    throw RuntimeFault(what + " while an iteration is captured: its replays could not do that");
}

void Gpu::free_after_capture(std::function<void()> free) {
  freed_.push_back(std::move(free));
}

void Gpu::join_queues() {
  for (cudaStream_t queue : queues_) order(queue, compute_handle());
}

void Gpu::fork_queues() {
  for (cudaStream_t queue : queues_) order(compute_handle(), queue);
}

void Gpu::make_current() const {
  ZP_CUDA(cudaSetDevice(ordinal_));
}

void Gpu::defer(std::function<void()> work, std::vector<const void*> memory) {
  flush_deferred();
  put_off_ = std::move(work);
  put_off_memory_ = std::move(memory);
}

bool Gpu::may_overtake(const void* storage, const void* other) const {
  const auto is_used = [this](const void* one) {
    return std::ranges::find(put_off_memory_, one) != put_off_memory_.end();
  };
  return put_off_ && !put_off_memory_.empty() && !is_used(storage) && !is_used(other);
}

void Gpu::run_put_off() {
  const auto work = std::exchange(put_off_, nullptr);
  ready_point_ = {};
  work();
}

StreamEvent Gpu::record_before_deferred(cudaStream_t queue, std::int64_t number) {
  recycle();
  cudaEvent_t event = nullptr;
  if (spare_.empty()) {
    ZP_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  } else {
    event = spare_.back();
    spare_.pop_back();
  }
  events_.push_back({event, role_of(queue), number});
  ZP_CUDA(cudaEventRecord(event, queue));
  return StreamEvent{first_ + static_cast<std::int64_t>(events_.size()) - 1};
}

void Gpu::wait_ahead(cudaStream_t queue, StreamEvent event) {
  const Mark* const of = mark(event);
  if (of == nullptr) return;
  const std::size_t role = role_of(queue);
  std::int64_t& before = waited_before_[role][of->role];
  if (role != of->role && event.value >= before) {
    note_work(queue);
    ZP_CUDA(cudaStreamWaitEvent(queue, of->event, 0));
    before = event.value + 1;
  }
  if (queue == compute_handle()) note_awaited(*of);
}

StreamEvent Gpu::ready_point() {
  const bool is_known = !ready_point_.is_none() && mark(ready_point_) != nullptr;
  if (!is_known) ready_point_ = record_before_deferred(compute_handle());
  return ready_point_;
}

void Gpu::note_awaited(const Mark& mark) {
  awaited_[mark.role] = std::max(awaited_[mark.role], mark.number);
}

std::size_t Gpu::role_of(cudaStream_t queue) const {
  const auto at = std::ranges::find(queues_, queue);
  ZP_CHECK(at != queues_.end(), "a queue of another GPU");
  return static_cast<std::size_t>(at - queues_.begin());
}

bool Gpu::is_idle() const {
  return std::ranges::none_of(
      queues_, [](cudaStream_t queue) { return cudaStreamQuery(queue) == cudaErrorNotReady; });
}

void Gpu::order(cudaStream_t before, cudaStream_t after) {
  if (before != after) wait(after, record(before));
}

// Pageable memory would make the driver wait for all that is queued before it.
void Gpu::copy_from_host(void* to, const void* from, std::size_t bytes, cudaStream_t queue) {
  constexpr std::size_t kLargestPart = kStagedBytes / 4;
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, kLargestPart);
    std::byte* const staged =
        staged_ + staging_.take(part, [this](StreamEvent event) { synchronize(event); });
    std::memcpy(staged, source, part);
    ZP_CUDA(cudaMemcpyAsync(target, staged, part, cudaMemcpyHostToDevice, queue));
    staging_.note_copy(record(queue));
    target += part;
    source += part;
    bytes -= part;
  }
}

bool Gpu::query(StreamEvent event) {
  const Mark* const of = mark(event);
  if (of == nullptr) return true;
  const cudaError_t result = cudaEventQuery(of->event);
  if (result == cudaErrorNotReady) return false;
  ZP_CUDA(result);
  return true;
}

// Without giving the processor away while an iteration may end: what wakes up late leaves the GPU
// idle until then (0.1 ms were seen).
void Gpu::synchronize(StreamEvent event) {
  using Milliseconds = std::chrono::milliseconds;
  constexpr Milliseconds kAwake{200};
  constexpr std::chrono::microseconds kPause{50};
  if (is_capturing()) {  // later work runs after it
    for (cudaStream_t queue : queues_) wait(queue, event);
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  Milliseconds told{0};
  while (!query(event)) {
    const auto waited =
        std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - begin);
    if (while_waiting && waited > told) while_waiting(waited.count());
    told = waited;
    if (waited > kAwake) std::this_thread::sleep_for(kPause);
  }
  if (const Mark* const of = mark(event)) note_awaited(*of);
}

const Gpu::Mark* Gpu::mark(StreamEvent event) const {
  const std::int64_t place = event.value - first_;
  ZP_CHECK(event.value >= 0 && place < static_cast<std::int64_t>(events_.size()),
           "an event that no stream recorded");
  if (place < 0 || (is_capturing() && event.value < first_captured_)) return nullptr;
  const Mark& of = events_[static_cast<std::size_t>(place)];
  return of.event == nullptr ? nullptr : &of;
}

// Seldom and many at once, as each question is a call of CUDA's.
void Gpu::recycle() {
  if (is_capturing()) return;  // which forbids to ask
  while (events_.size() >= recycled_at_) {
    if (!is_over(kRecycledEvents)) {
      recycled_at_ = events_.size() + kRecycledEvents;
      return;
    }
    for (std::size_t i = 0; i < kRecycledEvents; ++i) {
      const Mark& mark = events_.front();
      reached_[mark.role] = std::max(reached_[mark.role], mark.number);
      if (mark.event != nullptr) spare_.push_back(mark.event);
      events_.pop_front();
    }
    first_ += static_cast<std::int64_t>(kRecycledEvents);
    recycled_at_ = kKeptEvents + kRecycledEvents;
  }
}

// Of the oldest `events`: where the last of each queue is over, so are those before it.
bool Gpu::is_over(std::size_t events) const {
  std::array<cudaEvent_t, kRoles> last{};
  for (std::size_t i = 0; i < events; ++i)
    if (events_[i].event != nullptr) last[events_[i].role] = events_[i].event;
  return std::ranges::all_of(last, [](cudaEvent_t event) {
    return event == nullptr || cudaEventQuery(event) == cudaSuccess;
  });
}

bool Gpu::is_over(std::size_t role, std::int64_t marks) {
  if (awaited_[role] > marks || reached_[role] > marks) return true;
  const auto is_later = [&](const Mark& mark) {
    return mark.event != nullptr && mark.role == role && mark.number > marks;
  };
  const auto later = std::ranges::find_if(events_, is_later);
  if (later == events_.end() || cudaEventQuery(later->event) != cudaSuccess) return false;
  reached_[role] = later->number;
  return true;
}

}  // namespace zeroproof::cuda
