#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "engine/runtime/update_rules.h"
#include "zeroproof/internal/engine/runtime/kernels.h"

namespace zeroproof::cuda {

// The updates in a capture whose numbers go on from replay to replay: the host works them out, as
// it does for other steps, and gives them to the kernels of the next replay.
class CapturedUpdates {
 public:
  // After the launch of its kernel, whose arguments are the tensors and the rule.
  void add(cudaStream_t queue, const AdamUpdate& update);
  // `replays` after the first one.
  void set(cudaGraphExec_t graph, std::int64_t replays) const;

 private:
  struct Adam {
    cudaGraphNode_t kernel;
    AdamRule rule;
    optim::AdamOptions options;
    std::int64_t step;
  };
  std::vector<Adam> adams_;
};

}  // namespace zeroproof::cuda
