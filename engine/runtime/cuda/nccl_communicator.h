#pragma once

#include <nccl.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace zeroproof::cuda {

// One rank's end of a NCCL communicator, made without blocking. Calls come from its rank alone;
// abort() from any thread.
class NcclCommunicator {
 public:
  NcclCommunicator() = default;
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Of the GPU that is current; all ranks of the id call it. Throws RuntimeFault.
  void join(const ncclUniqueId& id, int rank, int size);
  ncclComm_t native() const { return native_; }
  // What NCCL met since the last call of the host, or the reason of an abort; none while it works.
  std::optional<std::string> failure();
  bool is_aborted() const { return is_aborted_; }
  // Ends what its kernels do; after it the communicator is dead (ncclCommAbort).
  void abort(const std::string& reason);

 private:
  std::mutex mutex_;
  std::atomic<bool> is_aborted_ = false;
  ncclComm_t native_ = nullptr;
  std::optional<std::string> failure_;
};

}  // namespace zeroproof::cuda
