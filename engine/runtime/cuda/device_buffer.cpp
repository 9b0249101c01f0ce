#include "engine/runtime/cuda/device_buffer.h"

#include <algorithm>
#include <utility>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/cuda/kernels/launches.h"
#include "engine/runtime/host/elements.h"
#include "model/check.h"

namespace zeroproof::cuda {
namespace {

constexpr auto kDouble = static_cast<std::int64_t>(sizeof(double));

Strided dense(void* data, DType dtype, std::int64_t elements) {
  Strided out;
  out.data = data;
  out.dtype = dtype;
  out.elements = elements;
  out.sizes[0] = elements;
  out.strides[0] = 1;
  return out;
}

// Of one element of the host that its strides repeat.
bool is_repeated(const TensorImpl& tensor) {
  for (std::size_t d = 0; d < tensor.sizes.size(); ++d)
    if (tensor.sizes[d] != 1 && tensor.strides[d] != 0) return false;
  return true;
}

}  // namespace

DeviceBuffer::DeviceBuffer(std::shared_ptr<Gpu> gpu, std::int64_t bytes, Placement placement)
    : gpu_(std::move(gpu)), placement_(placement), bytes_(bytes) {
  if (bytes == 0) return;
  gpu_->make_current();
  const auto size = static_cast<std::size_t>(bytes);
  if (placement == Placement::host) gpu_->refuse_capture("memory of the host is taken");
  arena_ = gpu_->arena();
  if (arena_)
    data_ = arena_->take(
        size, [this](StreamEvent event) { gpu_->wait_ahead(gpu_->compute_handle(), event); });
  else if (placement == Placement::host)
    ZP_CUDA(cudaHostAlloc(&data_, size, cudaHostAllocDefault));
  else
    data_ = gpu_->memory().take(size);
  if (data_ == nullptr) ZP_CUDA(cudaErrorMemoryAllocation);
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) free();
}

// An error is not reported here; the next call on the queue returns it.
void DeviceBuffer::free() {
  if (arena_) {
    if (arena_ == gpu_->arena()) give_back_captured();
    return;
  }
  const bool is_device = placement_ == Placement::device;
  if (gpu_->is_capturing()) {
    if (is_device) gpu_->memory().forget(static_cast<std::size_t>(bytes_));
    gpu_->free_after_capture([gpu = gpu_.get(), is_device, data = data_] {
      if (is_device)
        gpu->pool().free(data);
      else
        cudaFreeHost(data);
    });
    return;
  }
  if (is_device) return gpu_->memory().give_back(data_, static_cast<std::size_t>(bytes_), uses());
  cudaSetDevice(gpu_->ordinal());
  const Watchdog::Wait wait(gpu_->watchdog, "giving memory back");
  for (const KeptMemory::Use& use : uses())
    cudaStreamSynchronize(gpu_->handle(static_cast<StreamRole>(use.queue)));
  cudaStreamSynchronize(gpu_->compute_handle());
  cudaFreeHost(data_);
}

void DeviceBuffer::give_back_captured() {
  std::vector<StreamEvent> pending_uses;
  try {
    for (const KeptMemory::Use& use : uses())
      pending_uses.push_back(
          gpu_->record_before_deferred(gpu_->handle(static_cast<StreamRole>(use.queue))));
  } catch (...) {
    return;  // it stays the graph's
  }
  arena_->give_back(data_, std::move(pending_uses));
}

void DeviceBuffer::use_on(cudaStream_t queue) {
  if (queue == gpu_->compute_handle()) return;
  const std::size_t role = gpu_->role_of(queue);
  const auto known = std::ranges::find(used_on_, role, &KeptMemory::Use::queue);
  if (known != used_on_.end()) {
    known->marks = gpu_->marks_of(queue);
    return;
  }
  if (ready_.value >= 0) gpu_->wait_ahead(queue, ready_);
  used_on_.push_back({role, gpu_->marks_of(queue)});
}

KeptMemory::Uses DeviceBuffer::uses() const {
  KeptMemory::Uses uses;
  for (const KeptMemory::Use& use : used_on_)
    if (!gpu_->is_awaited(use.queue, use.marks)) uses.push_back(use);
  return uses;
}

std::vector<double> DeviceBuffer::read(const TensorImpl& tensor) const {
  return download(gpu_, strided(tensor), gpu_->compute());
}

DeviceBuffer* buffer_of(const TensorImpl& tensor) {
  ZP_CHECK(tensor.storage != nullptr, "a kernel on a batched tensor");
  return static_cast<DeviceBuffer*>(tensor.storage->device.get());
}

Tensor make_tensor(const std::shared_ptr<Gpu>& gpu, Shape sizes, DType dtype, Placement placement) {
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = std::make_shared<Storage>();
  impl->storage->device =
      std::make_shared<DeviceBuffer>(gpu, numel(sizes) * item_bytes(dtype), placement);
  impl->strides = contiguous_strides(sizes);
  impl->sizes = std::move(sizes);
  impl->dtype = dtype;
  return Tensor(std::move(impl));
}

Tensor upload(const std::shared_ptr<Gpu>& gpu, const std::vector<double>& values, Shape sizes,
              DType dtype, cudaStream_t queue) {
  const auto elements = static_cast<std::int64_t>(values.size());
  gpu->refuse_capture("numbers of the host are copied to the GPU");
  Tensor out = make_tensor(gpu, std::move(sizes), dtype);
  if (elements == 0) return out;
  gpu->order(gpu->compute(), queue);  // the memory is given in its order
  buffer_of(out.impl())->use_on(queue);
  DeviceBuffer wide(gpu, elements * kDouble, Placement::device);
  gpu->order(gpu->compute(), queue);
  wide.use_on(queue);
  gpu->copy_from_host(wide.data(), values.data(), values.size() * sizeof(double), queue);
  ZP_CUDA(launch_copy(queue, strided(Span::of(out)), dense(wide.data(), DType::float64, elements),
                      1.0));
  return out;
}

Tensor uploaded(const std::shared_ptr<Gpu>& gpu, const Tensor& x) {
  if (buffer_of(x.impl()) != nullptr) return x;
  Tensor out = upload(gpu, x.values(), x.sizes(), x.dtype(), gpu->compute());
  out.impl().device = x.device();
  return out;
}

bool is_strided(const TensorImpl& tensor) {
  return buffer_of(tensor) != nullptr || is_repeated(tensor) || numel(tensor.sizes) == 0;
}

Strided strided(const TensorImpl& tensor) {
  const std::int64_t elements = numel(tensor.sizes);
  Strided out = dense(nullptr, tensor.dtype, elements);
  if (elements == 0) return out;
  const DeviceBuffer* const buffer = buffer_of(tensor);
  if (buffer == nullptr) {
    ZP_CHECK(is_repeated(tensor), "a kernel on elements that the host keeps");
    out.constant = tensor.storage->elements[static_cast<std::size_t>(tensor.offset_elements)];
    return out;
  }
  out.data = buffer->data() + tensor.offset_elements * item_bytes(tensor.dtype);
  if (host::is_dense({const_cast<TensorImpl*>(&tensor), 0, elements})) return out;
  ZP_CHECK(tensor.sizes.size() <= kDimsMax, "a kernel on a tensor of more than 8 dimensions");
  out.dims = static_cast<int>(tensor.sizes.size());
  std::ranges::copy(tensor.sizes, out.sizes.begin());
  std::ranges::copy(tensor.strides, out.strides.begin());
  return out;
}

Strided strided(const Span& span) {
  const bool is_dense = span.is_empty() || host::is_dense(span);
  Strided out = strided(*span.tensor);
  if (!is_dense) return out;
  void* const data = out.data == nullptr ? nullptr
                                         : static_cast<std::byte*>(out.data) +
                                               span.begin * item_bytes(span.dtype());
  Strided part = dense(data, span.dtype(), span.elements);
  part.constant = out.constant;
  return part;
}

std::vector<double> download(const std::shared_ptr<Gpu>& gpu, const Strided& from,
                             cudaStream_t queue) {
  std::vector<double> values(static_cast<std::size_t>(from.elements), from.constant);
  if (from.data == nullptr || values.empty()) return values;
  gpu->refuse_capture("the host reads numbers of the GPU");
  gpu->make_current();
  if (from.elements <= Gpu::kInboxDoubles) {
    ZP_CUDA(launch_copy(queue, dense(gpu->inbox(), DType::float64, from.elements), from, 1.0));
    gpu->synchronize(gpu->record(queue));
    std::copy_n(gpu->inbox(), from.elements, values.begin());
    return values;
  }
  DeviceBuffer wide(gpu, from.elements * kDouble, Placement::device);
  gpu->order(gpu->compute(), queue);
  wide.use_on(queue);
  ZP_CUDA(launch_copy(queue, dense(wide.data(), DType::float64, from.elements), from, 1.0));
  gpu->synchronize(gpu->record(queue));
  const Watchdog::Wait wait(gpu->watchdog, "a copy from the GPU");
  ZP_CUDA(cudaMemcpyAsync(values.data(), wide.data(), values.size() * sizeof(double),
                          cudaMemcpyDeviceToHost, queue));
  ZP_CUDA(cudaStreamSynchronize(queue));
  return values;
}

}  // namespace zeroproof::cuda
