#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/runtime/cuda/gpu.h"
#include "engine/runtime/cuda/nccl_clique.h"
#include "engine/runtime/process_group.h"

namespace zeroproof::cuda {

// What Gpus holds.
class GpuSet {
 public:
  explicit GpuSet(int count);

  // Held by the world that uses the GPUs: others wait.
  std::mutex& turn() { return turn_; }
  const std::vector<std::shared_ptr<Gpu>>& gpus() const { return gpus_; }
  // Between the GPUs of these ranks; made on first use, and again after a failure.
  std::shared_ptr<NcclClique> clique(GroupKind kind, const std::vector<int>& ranks);

 private:
  std::mutex turn_;
  std::vector<std::shared_ptr<Gpu>> gpus_;
  std::map<std::pair<GroupKind, std::vector<int>>, std::shared_ptr<NcclClique>> cliques_;
};

}  // namespace zeroproof::cuda
