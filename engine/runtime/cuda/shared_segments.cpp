#include "engine/runtime/cuda/shared_segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/cuda/outside_capture.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::cuda {
namespace {

constexpr std::size_t kSegmentBytes = std::size_t{128} << 20;
constexpr std::size_t kPage = std::size_t{2} << 20;  // the driver's
constexpr std::size_t kSegmentsMax = 8192;

}  // namespace

struct SegmentDirectory::Table {
  std::uint64_t count;
  std::array<cudaIpcMemHandle_t, kSegmentsMax> handles;
};

SegmentDirectory::SegmentDirectory() : region_(sizeof(Table)) {}

SegmentDirectory::SegmentDirectory(const std::string& place) : region_(place, sizeof(Table)) {}

SegmentDirectory::Table& SegmentDirectory::table() const {
  return *reinterpret_cast<Table*>(region_.data());
}

bool SegmentDirectory::add(const cudaIpcMemHandle_t& segment) {
  Table& all = table();
  if (all.count == kSegmentsMax) return false;
  all.handles[all.count] = segment;
  std::atomic_ref(all.count).fetch_add(1, std::memory_order_release);
  return true;
}

cudaIpcMemHandle_t SegmentDirectory::handle(std::uint64_t segment) const {
  Table& all = table();
  const std::uint64_t known = std::atomic_ref(all.count).load(std::memory_order_acquire);
  if (segment == 0 || segment > std::min<std::uint64_t>(known, kSegmentsMax))
    throw RuntimeFault(fmt::format("segment {} of {}, which has {}", segment, place(), known));
  return all.handles[segment - 1];
}

// Errors cannot be reported here.
SharedSegments::~SharedSegments() {
  cudaSetDevice(ordinal_);
  for (const auto& [begin, segment] : segments_) cudaFree(const_cast<std::byte*>(begin));
}

void* SharedSegments::take(std::size_t bytes, const StreamHeap::Wait& wait) {
  if (void* const found = heap_.take(bytes, wait)) return found;
  return add_segment(bytes) ? heap_.take(bytes, wait) : nullptr;
}

bool SharedSegments::add_segment(std::size_t bytes) {
  const OutsideCapture outside;
  const std::size_t size = std::max((bytes + kPage - 1) / kPage * kPage, kSegmentBytes);
  void* data = nullptr;
  const cudaError_t result = cudaMalloc(&data, size);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return false;
  }
  ZP_CUDA(result);
  auto& [known, segment] =
      *segments_.emplace(static_cast<std::byte*>(data), Segment{size, SharedAddress::kUnshared})
           .first;
  heap_.add(data, size);
  cudaIpcMemHandle_t handle{};
  ZP_CUDA(cudaIpcGetMemHandle(&handle, data));
  if (directory_.add(handle)) segment.number = segments_.size();
  return true;
}

SharedAddress SharedSegments::address_of(const void* data) const {
  const auto* const place = static_cast<const std::byte*>(data);
  if (place == nullptr) return {};
  const auto after = segments_.upper_bound(place);
  if (after == segments_.begin()) return {SharedAddress::kUnshared, 0};
  const auto& [begin, segment] = *std::prev(after);
  const auto offset = static_cast<std::uint64_t>(place - begin);
  if (offset >= segment.bytes) return {SharedAddress::kUnshared, 0};
  return {segment.number, offset};
}

PeerSegments::~PeerSegments() {
  cudaSetDevice(ordinal_);
  for (const auto& [number, data] : mapped_) cudaIpcCloseMemHandle(data);
}

const void* PeerSegments::pointer(const SharedAddress& address) {
  if (address.segment == SharedAddress::kNone) return nullptr;
  return segment(address.segment) + address.offset;
}

std::byte* PeerSegments::segment(std::uint64_t number) {
  const auto known = mapped_.find(number);
  if (known != mapped_.end()) return known->second;
  const OutsideCapture outside;
  ZP_CUDA(cudaSetDevice(ordinal_));
  void* data = nullptr;
  ZP_CUDA(cudaIpcOpenMemHandle(&data, directory_.handle(number), cudaIpcMemLazyEnablePeerAccess));
  mapped_.emplace(number, static_cast<std::byte*>(data));
  return static_cast<std::byte*>(data);
}

}  // namespace zeroproof::cuda
