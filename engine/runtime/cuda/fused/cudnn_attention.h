#pragma once

#include <cstddef>
#include <memory>

#include "engine/runtime/cuda/fused/attention.h"

namespace zeroproof::cuda {

// attention.h's functions through cuDNN's fused attention, plans made once a shape on the current
// device. `is_deterministic` takes backward engines whose two runs give equal bits. For one host
// thread; throws RuntimeFault, also for a shape that no engine of cuDNN supports.
class CudnnAttention {
 public:
  explicit CudnnAttention(bool is_deterministic);
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  // Of one forward or backward of the shape; makes its plans. Call it before a stream is captured.
  std::size_t workspace_bytes(const AttentionShape& shape);

  // `workspace`: of the device, 256-byte aligned, of at least that many bytes.
  void forward(const AttentionShape& shape, const AttentionForward& args, void* workspace,
               cudaStream_t stream);
  void backward(const AttentionShape& shape, const AttentionBackward& args, void* workspace,
                cudaStream_t stream);

 private:
  class Cache;
  std::unique_ptr<Cache> cache_;
};

}  // namespace zeroproof::cuda
