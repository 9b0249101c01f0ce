#include "engine/runtime/cuda/nccl_clique.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <thread>
#include <utility>

#include "engine/runtime/cuda/check.h"

namespace zeroproof::cuda {

NcclClique::NcclClique(std::vector<int> ordinals)
    : ordinals_(std::move(ordinals)), ranks_(ordinals_.size()) {
  ncclUniqueId id;
  ZP_NCCL(ncclGetUniqueId(&id));
  const auto size = static_cast<int>(ranks_.size());
  ZP_NCCL(ncclGroupStart());
  for (int rank = 0; rank < size; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    ZP_CUDA(cudaSetDevice(ordinals_[at]));
    ZP_NCCL(ncclCommInitRank(&ranks_[at], size, id, rank));
  }
  ZP_NCCL(ncclGroupEnd());
}

NcclClique::~NcclClique() {
  if (!is_aborted_) end(is_dead() ? ncclCommAbort : ncclCommDestroy);
}

std::optional<std::string> NcclClique::failure(int rank) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (is_aborted_) return reason_;
  if (!lock) return std::nullopt;  // another rank asks, or is about to abort
  ncclResult_t result = ncclSuccess;
  ncclCommGetAsyncError(communicator(rank), &result);
  if (result == ncclSuccess || result == ncclInProgress) return std::nullopt;
  return fmt::format("NCCL failed: {}: {}", ncclGetErrorString(result),
                     ncclGetLastError(communicator(rank)));
}

bool NcclClique::is_dead() {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
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

// Each waits for the others of its node, so all at once.
void NcclClique::end(ncclResult_t (*ends)(ncclComm_t)) {
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    threads.emplace_back([this, ends, rank] {
      cudaSetDevice(ordinals_[rank]);
      ends(ranks_[rank]);
    });
}

}  // namespace zeroproof::cuda
