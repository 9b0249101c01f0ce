#include "engine/runtime/cuda/cuda_stream.h"

#include <utility>

#include "engine/runtime/cuda/device_buffer.h"
#include "model/check.h"

namespace zeroproof::cuda {

CudaStream::CudaStream(StreamRole role, std::shared_ptr<Gpu> gpu, host::StreamLog& log)
    : id_{static_cast<std::int32_t>(role)},
      gpu_(std::move(gpu)),
      queue_(gpu_->handle(role)),
      log_(log) {}

StreamEvent CudaStream::record() {
  const StreamEvent event = gpu_->record(queue_);
  if (log_.observer) log_.observer->on_record(id_, event);
  return event;
}

void CudaStream::wait(StreamEvent event) {
  gpu_->wait(queue_, event);
  if (log_.observer) log_.observer->on_wait(id_, event);
}

bool CudaStream::query(StreamEvent event) {
  return gpu_->query(event);
}

void CudaStream::synchronize(StreamEvent event) {
  gpu_->synchronize(event);
  if (log_.observer) log_.observer->on_host_wait(event);
}

void CudaStream::record_use(const Tensor& tensor) {
  ZP_CHECK(tensor.is_defined(), "use of an undefined tensor recorded");
  if (DeviceBuffer* buffer = buffer_of(tensor.impl())) buffer->use_on(queue_);
  if (log_.observer) log_.observer->on_record_use(id_, tensor.impl());
}

CudaStreams::CudaStreams(const std::shared_ptr<Gpu>& gpu, AccessObserver* observer)
    : log_{observer, 0} {
  for (const StreamRole role :
       {StreamRole::compute, StreamRole::reduction, StreamRole::all_gather, StreamRole::offload})
    streams_.emplace_back(role, gpu, log_);
}

cudaStream_t native(const Stream& stream) {
  return static_cast<const CudaStream&>(stream).native();
}
cudaStream_t handle(const Stream& stream) {
  return static_cast<const CudaStream&>(stream).handle();
}

}  // namespace zeroproof::cuda
