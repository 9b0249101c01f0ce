#pragma once

#include <cuda_runtime_api.h>

#include "engine/runtime/cuda/check.h"

namespace zeroproof::cuda {

// The thread may do what a capture forbids, with a stream that is not captured.
class OutsideCapture {
 public:
  OutsideCapture() { ZP_CUDA(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~OutsideCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace zeroproof::cuda
