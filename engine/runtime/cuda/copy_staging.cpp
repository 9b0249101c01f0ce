#include "engine/runtime/cuda/copy_staging.h"

#include "engine/runtime/cuda/device_buffer.h"

namespace zeroproof::cuda {

std::byte* CopyStaging::of(cudaStream_t queue) {
  Tensor& tensor = tensors_[gpu_.role_of(queue)];
  if (!tensor.is_defined()) {
    constexpr std::size_t kElements = kBytes / sizeof(float);
    tensor = memory_.allocate(static_cast<std::int64_t>(kElements), DType::float32);
  }
  DeviceBuffer* const buffer = buffer_of(tensor.impl());
  buffer->use_on(queue);
  return buffer->data();
}

}  // namespace zeroproof::cuda
