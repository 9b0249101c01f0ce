#include "engine/runtime/cuda/captured_updates.h"

#include <array>

#include "engine/runtime/cuda/check.h"
#include "model/check.h"

namespace zeroproof::cuda {
namespace {

// The node that was captured last.
cudaGraphNode_t last_node(cudaStream_t queue) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* nodes = nullptr;
  std::size_t count = 0;
  ZP_CUDA(cudaStreamGetCaptureInfo(queue, &status, nullptr, nullptr, &nodes, nullptr, &count));
  ZP_CHECK(status == cudaStreamCaptureStatusActive && count == 1, "a kernel that is not captured");
  return *nodes;
}

}  // namespace

void CapturedUpdates::add(cudaStream_t queue, const AdamUpdate& update) {
  adams_.push_back({last_node(queue), adam_rule(update), update.options, update.step});
}

void CapturedUpdates::set(cudaGraphExec_t graph, std::int64_t replays) const {
  for (const Adam& of : adams_) {
    AdamRule rule = of.rule;
    set_step(rule, of.options, of.step + replays);
    cudaKernelNodeParams params{};
    ZP_CUDA(cudaGraphKernelNodeGetParams(of.kernel, &params));
    std::array<void*, 2> arguments = {params.kernelParams[0], &rule};
    params.kernelParams = arguments.data();
    ZP_CUDA(cudaGraphExecKernelNodeSetParams(graph, of.kernel, &params));
  }
}

}  // namespace zeroproof::cuda
