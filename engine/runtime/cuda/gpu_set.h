#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/runtime/cuda/gpu.h"
#include "engine/runtime/cuda/nccl_communicator.h"
#include "engine/runtime/process_group.h"

namespace zeroproof::cuda {

// What Gpus holds.
class GpuSet {
 public:
  explicit GpuSet(int count);

  // Held by the world that uses the GPUs: others wait.
  std::mutex& turn() { return turn_; }
  const std::vector<std::shared_ptr<Gpu>>& gpus() const { return gpus_; }
  using Communicators = std::vector<std::shared_ptr<NcclCommunicator>>;
  // Between the GPUs of these ranks, in their order; made on first use, and again after an abort.
  const Communicators& communicators(GroupKind kind, const std::vector<int>& ranks);

 private:
  std::mutex turn_;
  std::vector<std::shared_ptr<Gpu>> gpus_;
  std::map<std::pair<GroupKind, std::vector<int>>, Communicators> communicators_;
};

}  // namespace zeroproof::cuda
