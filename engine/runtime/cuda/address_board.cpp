#include "engine/runtime/cuda/address_board.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <thread>
#include <utility>

#include "engine/runtime/cuda/check.h"

namespace zeroproof::cuda {

bool AddressBoard::is_complete(std::size_t number) {
  const std::lock_guard lock(mutex_);
  return round(number).told == told_.size();
}

// The others are about to come, as they queue the same work; so without giving the processor away.
std::vector<AddressBoard::Addresses> AddressBoard::exchange(
    int rank, Addresses mine, const std::function<void(std::int64_t)>& while_waiting) {
  std::size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = told_[static_cast<std::size_t>(rank)]++;
    while (rounds_.size() + first_ <= number) rounds_.emplace_back().of.resize(told_.size());
    round(number).of[static_cast<std::size_t>(rank)] = std::move(mine);
    ++round(number).told;
  }
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t asked = 0;
  while (!is_complete(number)) {
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin);
    if (waited.count() > asked) while_waiting(waited.count());
    asked = waited.count();
    std::this_thread::yield();
  }
  const std::lock_guard lock(mutex_);
  std::vector<Addresses> all = round(number).of;
  ++round(number).taken;
  while (!rounds_.empty() && rounds_.front().taken == told_.size()) {
    rounds_.pop_front();
    ++first_;
  }
  return all;
}

bool share_memory(const std::vector<int>& ordinals) {
  for (const int from : ordinals)
    for (const int to : ordinals) {
      int is_reached = 1;
      if (from != to) ZP_CUDA(cudaDeviceCanAccessPeer(&is_reached, from, to));
      if (is_reached == 0) return false;
    }
  for (const int owner : ordinals) {
    cudaMemPool_t pool = nullptr;
    ZP_CUDA(cudaDeviceGetDefaultMemPool(&pool, owner));
    for (const int user : ordinals) {
      if (user == owner) continue;
      cudaMemAccessDesc access{};
      access.location.type = cudaMemLocationTypeDevice;
      access.location.id = user;
      access.flags = cudaMemAccessFlagsProtReadWrite;
      ZP_CUDA(cudaMemPoolSetAccess(pool, &access, 1));
    }
  }
  return true;
}

}  // namespace zeroproof::cuda
