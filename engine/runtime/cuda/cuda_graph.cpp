#include "engine/runtime/cuda/cuda_graph.h"

#include <utility>

#include "engine/runtime/cuda/captured_updates.h"
#include "engine/runtime/cuda/check.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::cuda {
namespace {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using GraphHandle = std::unique_ptr<CUgraph_st, DestroyGraph>;

class CudaGraph final : public DeviceGraph {
 public:
  CudaGraph(std::shared_ptr<Gpu> gpu, GraphHandle graph, std::shared_ptr<GraphArena> arena,
            CapturedUpdates updates, bool& has_replayed)
      : gpu_(std::move(gpu)),
        graph_(std::move(graph)),
        arena_(std::move(arena)),
        updates_(std::move(updates)),
        has_replayed_(has_replayed) {
    // Communication goes first, as on the streams.
    ZP_CUDA(
        cudaGraphInstantiate(&executable_, graph_.get(), cudaGraphInstantiateFlagUseNodePriority));
    ZP_CUDA(cudaGraphUpload(executable_, gpu_->compute()));
  }
  ~CudaGraph() override {
    cudaSetDevice(gpu_->ordinal());
    cudaStreamSynchronize(gpu_->compute_handle());
    cudaGraphExecDestroy(executable_);
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void replay() override {
    gpu_->make_current();
    if (replays_ > 0) updates_.set(executable_, replays_);
    ++replays_;
    has_replayed_ = true;
    gpu_->join_queues();
    const Watchdog::Wait wait(gpu_->watchdog, "a launch of the captured iteration");
    ZP_CUDA(cudaGraphLaunch(executable_, gpu_->compute()));
    gpu_->fork_queues();
  }

 private:
  std::shared_ptr<Gpu> gpu_;
  GraphHandle graph_;  // whose kernels updates_ knows
  cudaGraphExec_t executable_ = nullptr;
  std::shared_ptr<GraphArena> arena_;
  CapturedUpdates updates_;
  bool& has_replayed_;  // of what captured it
  std::int64_t replays_ = 0;
};

// Ends a capture that `work` does not come to the end of.
class Capture {
 public:
  Capture(Gpu& gpu, std::shared_ptr<GraphArena> arena) : gpu_(gpu) {
    gpu_.begin_capture(std::move(arena));
  }
  ~Capture() {
    if (gpu_.is_capturing()) const GraphHandle unused(gpu_.end_capture());
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  Gpu& gpu_;
};

}  // namespace

std::unique_ptr<DeviceGraph> CudaGraphCapture::capture(const std::function<void()>& work) {
  gpu_->make_current();
  auto arena = std::make_shared<GraphArena>(gpu_->pool().segments());
  CapturedUpdates updates;
  const Capture capture(*gpu_, arena);
  kernels_.collect_updates(&updates);
  try {
    work();
  } catch (...) {
    kernels_.collect_updates(nullptr);
    throw;
  }
  kernels_.collect_updates(nullptr);
  const bool is_carried = gpu_->has_freed_earlier_memory();
  GraphHandle graph(gpu_->end_capture());
  if (graph == nullptr)
    throw RuntimeFault("CUDA could not capture the iteration: something in it cannot be captured");
  if (is_carried)
    throw RuntimeFault(
        "the iteration gives back memory that the one before it took: a replay would not find it");
  return std::make_unique<CudaGraph>(gpu_, std::move(graph), std::move(arena), std::move(updates),
                                     has_replayed_);
}

}  // namespace zeroproof::cuda
