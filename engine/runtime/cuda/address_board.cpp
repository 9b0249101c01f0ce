#include "engine/runtime/cuda/address_board.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "engine/runtime/cuda/check.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::cuda {
namespace {

void check_same(const std::vector<std::string>& calls) {
  const auto other =
      std::ranges::find_if(calls, [&](const std::string& call) { return call != calls.front(); });
  if (other == calls.end()) return;
  throw RuntimeFault(
      fmt::format("ranks of a group issue different collectives: rank 0 {}, rank {} {}",
                  calls.front(), other - calls.begin(), *other));
}

}  // namespace

bool AddressBoard::is_complete(std::size_t number) {
  const std::lock_guard lock(mutex_);
  return round(number).told == told_.size();
}

// The others are about to come, as they queue the same work; so without giving the processor away.
std::vector<AddressBoard::Addresses> AddressBoard::exchange(
    int rank, const std::string& call, Addresses mine,
    const std::function<void(std::int64_t)>& while_waiting) {
  std::size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = told_[static_cast<std::size_t>(rank)]++;
    while (rounds_.size() + first_ <= number) {
      Round& added = rounds_.emplace_back();
      added.of.resize(told_.size());
      added.calls.resize(told_.size());
    }
    round(number).of[static_cast<std::size_t>(rank)] = std::move(mine);
    round(number).calls[static_cast<std::size_t>(rank)] = call;
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
  const std::vector<std::string> calls = round(number).calls;
  ++round(number).taken;
  while (!rounds_.empty() && rounds_.front().taken == told_.size()) {
    rounds_.pop_front();
    ++first_;
  }
  check_same(calls);
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
