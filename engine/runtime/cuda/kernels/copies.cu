#include <algorithm>

#include "engine/runtime/cuda/kernels/launches.h"

namespace zeroproof::cuda {
namespace {

constexpr int kCopyThreads = 256;
constexpr int kAccesses = 8;  // of 16 bytes, in flight at once
constexpr std::int64_t kChunkBytes = std::int64_t{kCopyThreads} * kAccesses * sizeof(uint4);
constexpr int kRangesMax = 128;

// What one launch copies, as its argument: a block takes a chunk.
struct Copies {
  CopyRange ranges[kRangesMax];
  int first_chunk[kRangesMax + 1];
  int count;
};

__device__ int range_of(const Copies& of, int chunk) {
  int low = 0;
  int high = of.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (of.first_chunk[middle] <= chunk ? low : high) = middle;
  }
  return low;
}

__device__ bool is_aligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % sizeof(uint4) == 0;
}

__device__ void copy_bytes(char* to, const char* from, std::int64_t bytes) {
  for (std::int64_t i = threadIdx.x; i < bytes; i += kCopyThreads) to[i] = from[i];
}

__global__ void __launch_bounds__(kCopyThreads) copies_kernel(const __grid_constant__ Copies of) {
  const int chunk = static_cast<int>(blockIdx.x);
  const int index = range_of(of, chunk);
  const CopyRange range = of.ranges[index];
  const std::int64_t begin = (chunk - of.first_chunk[index]) * kChunkBytes;
  const std::int64_t bytes = min(kChunkBytes, range.bytes - begin);
  char* const to = static_cast<char*>(range.to) + begin;
  const char* const from = static_cast<const char*>(range.from) + begin;
  if (!is_aligned(to) || !is_aligned(from)) return copy_bytes(to, from, bytes);
  const int accesses = static_cast<int>(bytes / sizeof(uint4));
  uint4 values[kAccesses];
#pragma unroll
  for (int i = 0; i < kAccesses; ++i) {
    const int at = i * kCopyThreads + threadIdx.x;
    if (at < accesses) values[i] = reinterpret_cast<const uint4*>(from)[at];
  }
#pragma unroll
  for (int i = 0; i < kAccesses; ++i) {
    const int at = i * kCopyThreads + threadIdx.x;
    if (at < accesses) reinterpret_cast<uint4*>(to)[at] = values[i];
  }
  const std::int64_t done = std::int64_t{accesses} * sizeof(uint4);
  copy_bytes(to + done, from + done, bytes - done);
}

}  // namespace

cudaError_t launch_copies(cudaStream_t stream, const std::vector<CopyRange>& ranges) {
  for (std::size_t next = 0; next < ranges.size();) {
    Copies copies{};
    for (; next < ranges.size() && copies.count < kRangesMax; ++next) {
      copies.ranges[copies.count] = ranges[next];
      const std::int64_t chunks = (ranges[next].bytes + kChunkBytes - 1) / kChunkBytes;
      const int first = copies.first_chunk[copies.count++];
      copies.first_chunk[copies.count] = first + static_cast<int>(chunks);
    }
    const int chunks = copies.first_chunk[copies.count];
    if (chunks > 0) copies_kernel<<<chunks, kCopyThreads, 0, stream>>>(copies);
  }
  return cudaGetLastError();
}

}  // namespace zeroproof::cuda
