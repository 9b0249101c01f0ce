#include "engine/runtime/host/host_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "engine/runtime/fault.h"
#include "model/check.h"
#include "model/tensor_impl.h"

namespace zeroproof::host {

// Only `live` is touched by other threads; the observer is heard on the thread of its rank, or
// while nothing runs.
struct HostMemory::Account {
  std::atomic<std::int64_t> live = 0;
  std::int64_t peak = 0;
  std::int64_t allocations = 0;
  AccessObserver* accesses = nullptr;
};

struct HostMemory::Lease {
  Lease(std::shared_ptr<Account> of, const Storage& on, std::int64_t size)
      : account(std::move(of)), storage(on), bytes(size) {
    const std::int64_t live = account->live += bytes;
    account->peak = std::max(account->peak, live);
    ++account->allocations;
  }
  ~Lease() {
    account->live -= bytes;
    if (account->accesses) account->accesses->on_free(storage);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  std::shared_ptr<Account> account;
  const Storage& storage;  // whose member this is
  std::int64_t bytes;
};

HostMemory::HostMemory(const MemoryOptions& options)
    : options_(options), accounts_{std::make_shared<Account>(), std::make_shared<Account>()} {
  for (const std::shared_ptr<Account>& of : accounts_) of->accesses = options.accesses;
}

HostMemory::~HostMemory() {
  for (const std::shared_ptr<Account>& of : accounts_) of->accesses = nullptr;
}

Tensor HostMemory::allocate(std::int64_t elements, DType dtype, Placement placement) {
  ZP_CHECK(elements >= 0, "an allocation of fewer than no elements");
  const std::int64_t bytes = elements * item_bytes(dtype);
  const std::int64_t live = account(placement)->live;
  if (bytes > options_.capacity_bytes - live)
    throw RuntimeFault(fmt::format("out of memory: {} bytes asked for, {} of {} in use", bytes,
                                   live, options_.capacity_bytes));
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = std::make_shared<Storage>();
  const double garbage = options_.is_poisoned ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  impl->storage->elements.assign(static_cast<std::size_t>(elements), garbage);
  impl->storage->lease = std::make_shared<Lease>(account(placement), *impl->storage, bytes);
  impl->sizes = {elements};
  impl->strides = {1};
  impl->dtype = dtype;
  impl->device = placement == Placement::host ? Device::cpu() : options_.device;
  return Tensor(std::move(impl));
}

MemoryStats HostMemory::stats(Placement placement) const {
  const Account& of = *account(placement);
  return {of.live, of.peak, of.allocations};
}

void HostMemory::reset_peak() {
  for (const std::shared_ptr<Account>& of : accounts_) of->peak = of->live;
}

}  // namespace zeroproof::host
