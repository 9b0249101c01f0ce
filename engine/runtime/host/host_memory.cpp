#include "engine/runtime/host/host_memory.h"

#include <fmt/format.h>

#include <limits>

#include "model/check.h"
#include "zeroproof/engine/runtime/fault.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof::host {

HostMemory::HostMemory(const MemoryOptions& options)
    : options_(options),
      accounts_{std::make_shared<MemoryAccount>(options.accesses),
                std::make_shared<MemoryAccount>(options.accesses)} {}

HostMemory::~HostMemory() {
  for (const std::shared_ptr<MemoryAccount>& of : accounts_) of->stop_observing();
}

Tensor HostMemory::allocate(std::int64_t elements, DType dtype, Placement placement) {
  ZP_CHECK(elements >= 0, "an allocation of fewer than no elements");
  const std::int64_t bytes = elements * item_bytes(dtype);
  const std::int64_t live = account(placement)->live_bytes();
  if (bytes > options_.capacity_bytes - live)
    throw RuntimeFault(fmt::format("out of memory: {} bytes asked for, {} of {} in use", bytes,
                                   live, options_.capacity_bytes));
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = std::make_shared<Storage>();
  const double garbage = options_.is_poisoned ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  impl->storage->elements.assign(static_cast<std::size_t>(elements), garbage);
  impl->storage->lease = MemoryAccount::lease(account(placement), *impl->storage, bytes);
  impl->sizes = {elements};
  impl->strides = {1};
  impl->dtype = dtype;
  impl->device = placement == Placement::host ? Device::cpu() : options_.device;
  return Tensor(std::move(impl));
}

MemoryStats HostMemory::stats(Placement placement) const {
  return account(placement)->stats();
}

void HostMemory::reset_peak() {
  for (const std::shared_ptr<MemoryAccount>& of : accounts_) of->reset_peak();
}

}  // namespace zeroproof::host
