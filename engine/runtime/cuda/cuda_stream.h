#pragma once

#include <memory>
#include <vector>

#include "engine/runtime/cuda/gpu.h"
#include "engine/runtime/host/host_stream.h"

namespace zeroproof::cuda {

// One queue of the GPU. `log` must outlive it.
class CudaStream final : public Stream {
 public:
  CudaStream(StreamRole role, std::shared_ptr<Gpu> gpu, host::StreamLog& log);
  using Stream::synchronize;
  using Stream::wait;

  StreamId id() const override { return id_; }
  StreamEvent record() override;
  void wait(StreamEvent event) override;
  bool query(StreamEvent event) override;
  void synchronize(StreamEvent event) override;
  void record_use(const Tensor& tensor) override;

  // For work that comes now.
  cudaStream_t native() const { return gpu_->queue(static_cast<StreamRole>(id_.value)); }
  cudaStream_t handle() const { return queue_; }

 private:
  StreamId id_;
  std::shared_ptr<Gpu> gpu_;
  cudaStream_t queue_;
  host::StreamLog& log_;
};

// The streams of one rank by role. The model's arithmetic all runs on the compute stream, which so
// is every user stream as well.
class CudaStreams {
 public:
  CudaStreams(const std::shared_ptr<Gpu>& gpu, AccessObserver* observer);
  CudaStreams(const CudaStreams&) = delete;
  CudaStreams& operator=(const CudaStreams&) = delete;

  host::StreamLog& log() { return log_; }
  Stream& of(StreamRole role) { return streams_[static_cast<std::size_t>(role)]; }

 private:
  host::StreamLog log_;
  std::vector<CudaStream> streams_;
};

cudaStream_t native(const Stream& stream);
// To distinguish queues.
cudaStream_t handle(const Stream& stream);

}  // namespace zeroproof::cuda
