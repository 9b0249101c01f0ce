#include "engine/runtime/cuda/peer_barrier.h"

#include <cuda.h>
#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/host/rendezvous.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::cuda {
namespace {

using Clock = std::chrono::steady_clock;
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

CUstreamBatchMemOpParams write_of(std::uint32_t* flag, std::uint32_t value) {
  CUstreamBatchMemOpParams out{};
  out.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  out.writeValue.address = reinterpret_cast<CUdeviceptr>(flag);
  out.writeValue.value = value;
  return out;
}

CUstreamBatchMemOpParams wait_for_one(std::uint32_t* flag) {
  CUstreamBatchMemOpParams out{};
  out.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  out.waitValue.address = reinterpret_cast<CUdeviceptr>(flag);
  out.waitValue.value = 1;
  out.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  return out;
}

// The current GPU reaches memory of `other` that cudaMalloc gave, also what comes later.
void enable_peer_access(int other) {
  const cudaError_t result = cudaDeviceEnablePeerAccess(other, 0);
  if (result == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();
  else
    ZP_CUDA(result);
}

}  // namespace

bool PeerBarrier::is_available() {
  return batch_mem_op() != nullptr;
}

// Stream memory operations refuse the memory of a pool.
PeerBarrier::PeerBarrier(std::vector<std::shared_ptr<Gpu>> gpus) {
  for (std::shared_ptr<Gpu>& gpu : gpus) members_.emplace_back().gpu = std::move(gpu);
  for (Member& member : members_) {
    member.gpu->make_current();
    for (const Member& other : members_)
      if (&other != &member) enable_peer_access(other.gpu->ordinal());
    ZP_CUDA(cudaMalloc(&member.flags, flag_count() * sizeof(std::uint32_t)));
    ZP_CUDA(cudaMemset(member.flags, 0, flag_count() * sizeof(std::uint32_t)));
    ZP_CUDA(cudaDeviceSynchronize());
  }
}

PeerBarrier::~PeerBarrier() {
  for (const Member& member : members_) {
    cudaSetDevice(member.gpu->ordinal());
    cudaFree(member.flags);
  }
}

std::size_t PeerBarrier::flag_count() const {
  return Gpu::kRoles * static_cast<std::size_t>(kNumbers) * members_.size();
}

std::uint32_t* PeerBarrier::flag(int owner, std::size_t role, int number, int writer) {
  const std::size_t row = role * kNumbers + static_cast<std::size_t>(number);
  return members_[static_cast<std::size_t>(owner)].flags + row * members_.size() + writer;
}

// The own flags are cleared after the waits. A peer writes them again two meetings later at the
// earliest, and it comes there only after this rank has told it of the next one.
void PeerBarrier::meet(int rank, cudaStream_t queue, int number) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  const std::size_t role = member.gpu->role_of(queue);
  const auto size = static_cast<int>(members_.size());
  std::vector<CUstreamBatchMemOpParams> writes;
  std::vector<CUstreamBatchMemOpParams> waits;
  std::vector<CUstreamBatchMemOpParams> clears;
  for (int step = 1; step < size; ++step) {
    const int peer = (rank + step) % size;
    std::uint32_t* const own = flag(rank, role, number, peer);
    writes.push_back(write_of(flag(peer, role, number, rank), 1));
    waits.push_back(wait_for_one(own));
    clears.push_back(write_of(own, 0));
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
  is_released_ = true;
  locks.clear();
  std::vector<std::jthread> threads;
  for (Member& member : members_) threads.emplace_back([this, &member] { release(member); });
}

// Every wait clears its flags again, so they are set until the GPU has been idle for a while. Its
// rank may launch one more replay in that time. Errors have no reader here.
void PeerBarrier::release(Member& member) const {
  constexpr std::chrono::milliseconds kPause{1};
  constexpr std::chrono::milliseconds kIdle{100};
  constexpr std::chrono::seconds kPatience{5};
  const std::vector<std::uint32_t> set(flag_count(), 1);
  cudaSetDevice(member.gpu->ordinal());
  cudaStream_t queue = nullptr;
  cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking);
  const auto begin = Clock::now();
  auto busy = begin;
  while (Clock::now() - busy < kIdle && Clock::now() - begin < kPatience) {
    cudaMemcpyAsync(member.flags, set.data(), set.size() * sizeof(std::uint32_t),
                    cudaMemcpyHostToDevice, queue);
    if (!member.gpu->is_idle()) busy = Clock::now();
    std::this_thread::sleep_for(kPause);
  }
  cudaStreamDestroy(queue);
}

}  // namespace zeroproof::cuda
