#include "engine/runtime/cuda/nccl_communicator.h"

#include <fmt/format.h>

#include "engine/runtime/cuda/check.h"

namespace zeroproof::cuda {

NcclCommunicator::~NcclCommunicator() {
  if (native_ != nullptr) ncclCommAbort(native_);  // destroying waits for peers that may be gone
}

void NcclCommunicator::join(const ncclUniqueId& id, int rank, int size) {
  ZP_NCCL(ncclCommInitRank(&native_, size, id, rank));
}

std::optional<std::string> NcclCommunicator::failure() {
  const std::lock_guard lock(mutex_);
  if (failure_ || native_ == nullptr) return failure_;
  ncclResult_t result = ncclSuccess;
  ncclCommGetAsyncError(native_, &result);
  if (result == ncclSuccess || result == ncclInProgress) return std::nullopt;
  failure_ =
      fmt::format("NCCL failed: {}: {}", ncclGetErrorString(result), ncclGetLastError(native_));
  return failure_;
}

// Also while its rank is inside a call of NCCL: nothing else ends one that waits for a peer.
void NcclCommunicator::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  is_aborted_ = true;
  if (!failure_) failure_ = reason;
  if (native_ != nullptr) ncclCommAbort(native_);
  native_ = nullptr;
}

}  // namespace zeroproof::cuda
