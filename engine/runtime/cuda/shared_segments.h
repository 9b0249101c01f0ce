#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/runtime/process_board.h"
#include "engine/runtime/shared_region.h"
#include "engine/runtime/stream_heap.h"

namespace zeroproof::cuda {

// Where the processes of one machine find each other's segments: what each owner publishes in
// shared memory. Segments are numbered from 1 on.
class SegmentDirectory {
 public:
  // Of this process.
  SegmentDirectory();
  // Of another one.
  explicit SegmentDirectory(const std::string& place);

  std::string place() const { return region_.place(); }
  // False: there are too many.
  bool add(const cudaIpcMemHandle_t& segment);
  // Throws RuntimeFault for what its owner has not added.
  cudaIpcMemHandle_t handle(std::uint64_t segment) const;

 private:
  struct Table;
  Table& table() const;

  SharedRegion region_;
};

// All memory that one process takes on its GPU, so that others can map it: segments that CUDA makes
// handles of, in parts. They are kept to the end: what a peer has mapped stays where it is. Used by
// one thread at a time.
class SharedSegments {
 public:
  explicit SharedSegments(int ordinal) : ordinal_(ordinal) {}
  ~SharedSegments();
  SharedSegments(const SharedSegments&) = delete;
  SharedSegments& operator=(const SharedSegments&) = delete;

  std::string place() const { return directory_.place(); }
  // As heap(), with new segments. Null: there is no room.
  void* take(std::size_t bytes, const StreamHeap::Wait& wait);
  SharedAddress address_of(const void* data) const;
  StreamHeap& heap() { return heap_; }

 private:
  struct Segment {
    std::size_t bytes;
    std::uint64_t number;  // SharedAddress::kUnshared: is not in the directory
  };
  bool add_segment(std::size_t bytes);

  int ordinal_;
  SegmentDirectory directory_;
  StreamHeap heap_;
  std::map<const std::byte*, Segment> segments_;
};

// The segments of another process, mapped when they are first asked for.
class PeerSegments {
 public:
  PeerSegments(const std::string& place, int ordinal) : directory_(place), ordinal_(ordinal) {}
  ~PeerSegments();
  PeerSegments(const PeerSegments&) = delete;
  PeerSegments& operator=(const PeerSegments&) = delete;

  // On this process's GPU. RuntimeFault where CUDA cannot map it.
  const void* pointer(const SharedAddress& address);

 private:
  std::byte* segment(std::uint64_t number);

  SegmentDirectory directory_;
  int ordinal_;
  std::map<std::uint64_t, std::byte*> mapped_;
};

}  // namespace zeroproof::cuda
