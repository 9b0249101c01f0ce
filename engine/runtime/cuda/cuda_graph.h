#pragma once

#include <memory>

#include "engine/runtime/cuda/cuda_kernels.h"
#include "engine/runtime/cuda/gpu.h"
#include "zeroproof/internal/engine/runtime/graph_capture.h"

namespace zeroproof::cuda {

// Captures iterations of one rank as CUDA graphs. `kernels` must outlive it.
class CudaGraphCapture final : public GraphCapture {
 public:
  CudaGraphCapture(std::shared_ptr<Gpu> gpu, CudaKernels& kernels)
      : gpu_(std::move(gpu)), kernels_(kernels) {}

  bool is_capturing() const override { return gpu_->is_capturing(); }
  // A replay was asked for: no group knows its collectives.
  bool has_replayed() const { return has_replayed_; }
  std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work) override;

 private:
  std::shared_ptr<Gpu> gpu_;
  CudaKernels& kernels_;
  bool has_replayed_ = false;
};

}  // namespace zeroproof::cuda
