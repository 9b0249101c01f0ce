#include "engine/runtime/memory_account.h"

#include <algorithm>
#include <utility>

namespace zeroproof {

struct MemoryAccount::Lease {
  Lease(std::shared_ptr<MemoryAccount> of, const Storage& on, std::int64_t size)
      : account(std::move(of)), storage(on), bytes(size) {
    const std::int64_t live = account->live_ += bytes;
    account->peak_ = std::max(account->peak_, live);
    ++account->allocations_;
  }
  ~Lease() {
    account->live_ -= bytes;
    if (account->accesses_) account->accesses_->on_free(storage);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  std::shared_ptr<MemoryAccount> account;
  const Storage& storage;
  std::int64_t bytes;
};

std::shared_ptr<void> MemoryAccount::lease(std::shared_ptr<MemoryAccount> account,
                                           const Storage& on, std::int64_t bytes) {
  return std::make_shared<Lease>(std::move(account), on, bytes);
}

}  // namespace zeroproof
