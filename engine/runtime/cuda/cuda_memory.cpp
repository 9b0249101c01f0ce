#include "engine/runtime/cuda/cuda_memory.h"

#include <utility>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/cuda/device_buffer.h"
#include "model/check.h"

namespace zeroproof::cuda {
namespace {

constexpr int kNanBytes = 0xff;  // a NaN in every dtype

}  // namespace

CudaMemory::CudaMemory(std::shared_ptr<Gpu> gpu, Device device, bool is_poisoned,
                       AccessObserver* accesses)
    : gpu_(std::move(gpu)),
      device_(device),
      is_poisoned_(is_poisoned),
      accounts_{std::make_shared<MemoryAccount>(accesses),
                std::make_shared<MemoryAccount>(accesses)} {}

CudaMemory::~CudaMemory() {
  for (const std::shared_ptr<MemoryAccount>& of : accounts_) of->stop_observing();
}

Tensor CudaMemory::allocate(std::int64_t elements, DType dtype, Placement placement) {
  ZP_CHECK(elements >= 0, "an allocation of fewer than no elements");
  Tensor out = make_tensor(gpu_, {elements}, dtype, placement);
  TensorImpl& impl = out.impl();
  const std::int64_t bytes = elements * item_bytes(dtype);
  impl.storage->lease = MemoryAccount::lease(account(placement), *impl.storage, bytes);
  impl.device = placement == Placement::host ? Device::cpu() : device_;
  if (is_poisoned_ && bytes > 0)
    ZP_CUDA(cudaMemsetAsync(buffer_of(impl)->data(), kNanBytes, static_cast<std::size_t>(bytes),
                            gpu_->compute()));
  if (bytes > 0) buffer_of(impl)->mark_ready();
  return out;
}

MemoryStats CudaMemory::stats(Placement placement) const {
  return account(placement)->stats();
}

void CudaMemory::reset_peak() {
  for (const std::shared_ptr<MemoryAccount>& of : accounts_) of->reset_peak();
}

}  // namespace zeroproof::cuda
