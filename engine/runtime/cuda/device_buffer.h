#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/runtime/cuda/gpu.h"
#include "engine/runtime/cuda/kernels/strided.h"
#include "zeroproof/internal/engine/runtime/memory.h"
#include "zeroproof/internal/engine/runtime/span.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof::cuda {

// Memory of a GPU, or pinned memory of the host that it reaches. Given in the order of the compute
// stream: another stream's first use waits for that (use_on); goes back after the work of all.
class DeviceBuffer final : public DeviceElements {
 public:
  DeviceBuffer(std::shared_ptr<Gpu> gpu, std::int64_t bytes, Placement placement);
  ~DeviceBuffer() override;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::int64_t bytes() const { return bytes_; }
  // What is on the compute stream so far prepares the memory for its first user elsewhere.
  void mark_ready() { ready_ = gpu_->ready_point(); }
  // Before work of `queue` on it.
  void use_on(cudaStream_t queue);
  std::vector<double> read(const TensorImpl& tensor) const override;

 private:
  void free();
  void give_back_captured();

  std::shared_ptr<Gpu> gpu_;
  Placement placement_;
  std::int64_t bytes_;
  std::shared_ptr<GraphArena> arena_;  // whose memory it is; null: the pool's, or the host's
  void* data_ = nullptr;
  StreamEvent ready_{-1};
  // By other queues than the compute stream, which has not waited for them.
  KeptMemory::Uses uses() const;

  KeptMemory::Uses used_on_;
};

// Null: the elements are doubles of the host.
DeviceBuffer* buffer_of(const TensorImpl& tensor);

// A contiguous tensor without a graph; its elements are garbage.
Tensor make_tensor(const std::shared_ptr<Gpu>& gpu, Shape sizes, DType dtype,
                   Placement placement = Placement::device);
// A copy on the GPU of values given in row-major order, rounded to the dtype, made on `queue`.
Tensor upload(const std::shared_ptr<Gpu>& gpu, const std::vector<double>& values, Shape sizes,
              DType dtype, cudaStream_t queue);
// x itself, or a copy on the GPU of what the host keeps, made on the compute stream.
Tensor uploaded(const std::shared_ptr<Gpu>& gpu, const Tensor& x);
// Of elements on the GPU, or of one element of the host, repeated or not; others are uploaded
// first.
bool is_strided(const TensorImpl& tensor);
Strided strided(const TensorImpl& tensor);
Strided strided(const Span& span);
// The elements, contiguous in the host's memory, after what is queued on `queue`.
std::vector<double> download(const std::shared_ptr<Gpu>& gpu, const Strided& from,
                             cudaStream_t queue);

}  // namespace zeroproof::cuda
