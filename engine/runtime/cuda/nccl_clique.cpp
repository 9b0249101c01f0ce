#include "engine/runtime/cuda/nccl_clique.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/host/rendezvous.h"

namespace zeroproof::cuda {

NcclClique::NcclClique(const std::vector<int>& ordinals) {
  ncclUniqueId id;
  ZP_NCCL(ncclGetUniqueId(&id));
  for (const int ordinal : ordinals) members_.emplace_back().ordinal = ordinal;
  const auto size = static_cast<int>(members_.size());
  int rank = 0;
  ZP_NCCL(ncclGroupStart());
  for (Member& member : members_) {
    ZP_CUDA(cudaSetDevice(member.ordinal));
    ZP_NCCL(ncclCommInitRank(&member.communicator, size, id, rank++));
  }
  ZP_NCCL(ncclGroupEnd());
}

NcclClique::~NcclClique() {
  if (!is_aborted_) end(is_dead() ? ncclCommAbort : ncclCommDestroy);
}

void NcclClique::call(int rank, const std::function<ncclResult_t(ncclComm_t)>& nccl) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  const std::lock_guard lock(member.calls);
  if (is_aborted_) throw host::GroupAborted(reason_);
  ZP_NCCL(nccl(member.communicator));
}

std::optional<std::string> NcclClique::failure(int rank) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (is_aborted_) return reason_;
  if (!lock) return std::nullopt;  // another rank asks, or is about to abort
  const ncclComm_t communicator = members_[static_cast<std::size_t>(rank)].communicator;
  ncclResult_t result = ncclSuccess;
  ncclCommGetAsyncError(communicator, &result);
  if (result == ncclSuccess || result == ncclInProgress) return std::nullopt;
  return fmt::format("NCCL failed: {}: {}", ncclGetErrorString(result),
                     ncclGetLastError(communicator));
}

bool NcclClique::is_dead() {
  for (std::size_t rank = 0; rank < members_.size(); ++rank)
    if (failure(static_cast<int>(rank))) return true;
  return false;
}

void NcclClique::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (is_aborted_) return;
  reason_ = reason;
  is_aborted_ = true;
  end(ncclCommAbort);
}

// Each waits for the others of its node, so all at once. NCCL frees a communicator that another
// thread is still inside of, so that thread gets the time to leave: only one that waits for a peer
// needs longer, and nothing but the end frees it.
void NcclClique::end(ncclResult_t (*ends)(ncclComm_t)) {
  constexpr std::chrono::seconds kPatience{2};
  std::vector<std::jthread> threads;
  for (Member& member : members_)
    threads.emplace_back([&member, ends, kPatience] {
      const std::unique_lock lock(member.calls, kPatience);
      cudaSetDevice(member.ordinal);
      ends(member.communicator);
    });
}

}  // namespace zeroproof::cuda
