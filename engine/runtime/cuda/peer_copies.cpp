#include "engine/runtime/cuda/peer_copies.h"

#include <algorithm>
#include <utility>

#include "engine/runtime/cuda/check.h"

namespace zeroproof::cuda {
namespace {

// A kernel that reads the peers' memory takes less time for less.
constexpr std::int64_t kCopiedBytesMin = std::int64_t{1} << 20;

void queue_copy(cudaStream_t queue, const CopyRange& of) {
  ZP_CUDA(cudaMemcpyAsync(of.to, of.from, static_cast<std::size_t>(of.bytes),
                          cudaMemcpyDeviceToDevice, queue));
}

}  // namespace

PeerCopies::PeerCopies(const Gpu& gpu) : gpu_(gpu) {
  ZP_CUDA(cudaEventCreateWithFlags(&begin_, cudaEventDisableTiming));
  for (Lane& lane : lanes_) {
    ZP_CUDA(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
    ZP_CUDA(cudaEventCreateWithFlags(&lane.done, cudaEventDisableTiming));
  }
}

PeerCopies::~PeerCopies() {
  for (const Lane& lane : lanes_) {
    cudaEventDestroy(lane.done);
    cudaStreamDestroy(lane.stream);
  }
  cudaEventDestroy(begin_);
}

void PeerCopies::run(cudaStream_t queue, const std::vector<CopyRange>& ranges) {
  const bool are_small =
      std::ranges::all_of(ranges, [](const CopyRange& of) { return of.bytes < kCopiedBytesMin; });
  if (are_small) {
    ZP_CUDA(launch_copies(queue, ranges));
  } else if (gpu_.is_capturing() && ranges.size() > 1) {
    run_apart(queue, ranges);
  } else {
    for (const CopyRange& of : ranges) queue_copy(queue, of);
  }
}

void PeerCopies::run_apart(cudaStream_t queue, const std::vector<CopyRange>& ranges) {
  const std::size_t used = std::min(lanes_.size(), ranges.size());
  ZP_CUDA(cudaEventRecord(begin_, queue));
  for (std::size_t i = 0; i < used; ++i) {
    const Lane& lane = lanes_[i];
    ZP_CUDA(cudaStreamWaitEvent(lane.stream, begin_, 0));
    for (std::size_t next = i; next < ranges.size(); next += used)
      queue_copy(lane.stream, ranges[next]);
    ZP_CUDA(cudaEventRecord(lane.done, lane.stream));
  }
  for (std::size_t i = 0; i < used; ++i) ZP_CUDA(cudaStreamWaitEvent(queue, lanes_[i].done, 0));
}

}  // namespace zeroproof::cuda
