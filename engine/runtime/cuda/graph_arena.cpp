#include "engine/runtime/cuda/graph_arena.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/runtime/cuda/check.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::cuda {
namespace {

constexpr std::size_t kAlignment = 512;  // that of cudaMallocAsync
constexpr std::size_t kSegmentBytes = std::size_t{64} << 20;

// The thread may do what a capture forbids, with a stream that is not captured.
class OutsideCapture {
 public:
  OutsideCapture() { ZP_CUDA(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~OutsideCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace

GraphArena::GraphArena() {
  ZP_CUDA(cudaStreamCreateWithFlags(&queue_, cudaStreamNonBlocking));
}

// The owner that drops the last of it has waited for the work on it.
GraphArena::~GraphArena() {
  for (void* segment : segments_) cudaFreeAsync(segment, queue_);
  cudaStreamSynchronize(queue_);
  cudaStreamDestroy(queue_);
}

// The smallest that is large enough, so that large ones stay whole.
void* GraphArena::take(std::size_t bytes, const std::function<void(StreamEvent)>& wait) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto found = free_.lower_bound({bytes, nullptr});
  while (found == free_.end() && !late_.empty()) {
    const Late oldest = std::move(late_.front());
    late_.pop_front();
    for (const StreamEvent event : oldest.pending_uses) wait(event);
    release(blocks_.find(static_cast<std::byte*>(oldest.data)));
    found = free_.lower_bound({bytes, nullptr});
  }
  if (found == free_.end()) {
    add_segment(std::max(bytes, kSegmentBytes));
    found = free_.lower_bound({bytes, nullptr});
  }
  const auto block = blocks_.find(found->second);
  free_.erase(found);
  block->second.is_free = false;
  if (block->second.bytes > bytes) {
    const auto rest =
        blocks_.emplace(block->first + bytes, Block{.bytes = block->second.bytes - bytes}).first;
    block->second.bytes = bytes;
    release(rest);
  }
  return block->first;
}

void GraphArena::give_back(void* data, std::vector<StreamEvent> pending_uses) {
  if (pending_uses.empty())
    release(blocks_.find(static_cast<std::byte*>(data)));
  else
    late_.push_back({data, std::move(pending_uses)});
}

void GraphArena::add_segment(std::size_t bytes) {
  const OutsideCapture outside;
  void* data = nullptr;
  ZP_CUDA(cudaMallocAsync(&data, bytes, queue_));
  segments_.push_back(data);
  ZP_CUDA(cudaStreamSynchronize(queue_));
  release(blocks_.emplace(static_cast<std::byte*>(data), Block{bytes, false, true}).first);
}

// One with the free blocks beside it.
void GraphArena::release(Blocks::iterator block) {
  const auto next = std::next(block);
  if (next != blocks_.end() && next->second.is_free && !next->second.begins_segment) {
    free_.erase({next->second.bytes, next->first});
    block->second.bytes += next->second.bytes;
    blocks_.erase(next);
  }
  if (!block->second.begins_segment && std::prev(block)->second.is_free) {
    const auto before = std::prev(block);
    free_.erase({before->second.bytes, before->first});
    before->second.bytes += block->second.bytes;
    blocks_.erase(block);
    block = before;
  }
  block->second.is_free = true;
  free_.insert({block->second.bytes, block->first});
}

}  // namespace zeroproof::cuda
