#include "engine/runtime/cuda/peer_barrier.h"

#include <cuda.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/host/rendezvous.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::cuda {
namespace {

using BatchMemOp = CUresult (*)(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);

// By way of the runtime library, so that programs start where there is no driver.
BatchMemOp batch_mem_op() {
  constexpr unsigned kVersion = 12000;
  static const BatchMemOp kFound = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    ZP_CUDA(cudaGetDriverEntryPointByVersion("cuStreamBatchMemOp", &found, kVersion,
                                             cudaEnableDefault, &result));
    return reinterpret_cast<BatchMemOp>(found);
  }();
  return kFound;
}

CUstreamBatchMemOpParams write_of(std::uint32_t& flag, std::uint32_t value) {
  CUstreamBatchMemOpParams out{};
  out.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  out.writeValue.address = reinterpret_cast<CUdeviceptr>(&flag);
  out.writeValue.value = value;
  return out;
}

CUstreamBatchMemOpParams wait_for_one(std::uint32_t& flag) {
  CUstreamBatchMemOpParams out{};
  out.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  out.waitValue.address = reinterpret_cast<CUdeviceptr>(&flag);
  out.waitValue.value = 1;
  out.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  return out;
}

std::uint32_t load(std::uint32_t& flag) {
  return std::atomic_ref(flag).load(std::memory_order_relaxed);
}

}  // namespace

bool PeerBarrier::is_available() {
  return batch_mem_op() != nullptr;
}

std::size_t PeerBarrier::flag_count(std::size_t ranks) {
  return ranks * Gpu::kRoles * static_cast<std::size_t>(kNumbers) * ranks;
}

PeerBarrier::Flags PeerBarrier::own_flags(std::size_t ranks) {
  void* flags = nullptr;
  ZP_CUDA(cudaHostAlloc(&flags, flag_count(ranks) * sizeof(std::uint32_t),
                        cudaHostAllocPortable | cudaHostAllocMapped));
  std::fill_n(static_cast<std::uint32_t*>(flags), flag_count(ranks), 0);
  return {static_cast<std::uint32_t*>(flags), [](std::uint32_t* all) { cudaFreeHost(all); }};
}

PeerBarrier::PeerBarrier(const std::vector<std::shared_ptr<Gpu>>& gpus, Flags flags)
    : flags_(std::move(flags)) {
  for (const std::shared_ptr<Gpu>& gpu : gpus) members_.emplace_back().gpu = gpu;
  void* seen = nullptr;
  ZP_CUDA(cudaHostGetDevicePointer(&seen, flags_.get(), 0));
  device_flags_ = static_cast<std::uint32_t*>(seen);
}

// A GPU that is stalled for good keeps the flags.
PeerBarrier::~PeerBarrier() {
  constexpr std::chrono::seconds kPatience{5};
  if (!setter_.joinable()) return;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!are_idle() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  setter_ = {};
  if (!are_idle()) (void)flags_.release();
}

std::size_t PeerBarrier::place(int owner, std::size_t role, int number, int writer) const {
  const std::size_t row = (static_cast<std::size_t>(owner) * Gpu::kRoles + role) * kNumbers +
                          static_cast<std::size_t>(number);
  return row * members_.size() + static_cast<std::size_t>(writer);
}

// A rank that has come writes the flags of all others, and those clear them as they leave.
bool PeerBarrier::waits(int rank) const {
  for (int owner = 0; std::cmp_less(owner, members_.size()); ++owner)
    for (std::size_t role = 0; role < Gpu::kRoles; ++role)
      for (int number = 0; number < kNumbers; ++number)
        if (load(flags_.get()[place(owner, role, number, rank)]) != 0) return true;
  return false;
}

std::vector<int> PeerBarrier::absent() const {
  std::vector<int> ranks;
  for (int rank = 0; std::cmp_less(rank, members_.size()); ++rank)
    if (!waits(rank)) ranks.push_back(rank);
  if (ranks.size() == members_.size()) ranks.clear();
  return ranks;
}

bool PeerBarrier::are_idle() const {
  return std::ranges::all_of(
      members_, [](const Member& of) { return of.gpu == nullptr || of.gpu->is_idle(); });
}

// The own flags are cleared after the waits. A peer writes them again two meetings later at the
// earliest, and it comes there only after this rank has announced the next one.
void PeerBarrier::meet(int rank, cudaStream_t queue, int number) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  const std::size_t role = member.gpu->role_of(queue);
  const auto size = static_cast<int>(members_.size());
  std::vector<CUstreamBatchMemOpParams> writes;
  std::vector<CUstreamBatchMemOpParams> waits;
  std::vector<CUstreamBatchMemOpParams> clears;
  for (int step = 1; step < size; ++step) {
    const int peer = (rank + step) % size;
    std::uint32_t* const own = device_flags_ + place(rank, role, number, peer);
    writes.push_back(write_of(device_flags_[place(peer, role, number, rank)], 1));
    waits.push_back(wait_for_one(*own));
    clears.push_back(write_of(*own, 0));
  }
  writes.insert(writes.end(), waits.begin(), waits.end());
  writes.insert(writes.end(), clears.begin(), clears.end());
  const std::lock_guard lock(member.calls);
  if (is_released_) throw host::GroupAborted("the ranks of this group meet no more");
  const CUresult result =
      batch_mem_op()(queue, static_cast<unsigned>(writes.size()), writes.data(), 0);
  if (result != CUDA_SUCCESS)
    throw RuntimeFault(fmt::format("cuStreamBatchMemOp: error {}", static_cast<int>(result)));
}

void PeerBarrier::release() {
  std::deque<std::unique_lock<std::mutex>> locks;
  for (Member& member : members_) locks.emplace_back(member.calls);
  if (std::exchange(is_released_, true)) return;
  setter_ = std::jthread([this](const std::stop_token& stop) { set_until(stop); });
}

// Every wait clears its flags again, so they are set again and again. Another process sets those of
// its ranks: they may still be at work.
void PeerBarrier::set_until(const std::stop_token& stop) {
  constexpr std::chrono::microseconds kPause{200};
  const std::size_t row = flag_count(members_.size()) / members_.size();
  while (!stop.stop_requested()) {
    for (std::size_t owner = 0; owner < members_.size(); ++owner)
      for (std::size_t i = 0; members_[owner].gpu != nullptr && i < row; ++i)
        std::atomic_ref(flags_.get()[owner * row + i]).store(1, std::memory_order_relaxed);
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace zeroproof::cuda
