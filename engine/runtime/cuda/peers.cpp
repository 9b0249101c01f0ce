#include "engine/runtime/cuda/peers.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "engine/runtime/cuda/check.h"

namespace zeroproof::cuda {
namespace {

class ThreadPeers final : public Peers {
 public:
  explicit ThreadPeers(const std::vector<std::shared_ptr<Gpu>>& gpus)
      : addresses_(static_cast<int>(gpus.size())),
        barrier_(gpus, PeerBarrier::own_flags(gpus.size())) {}

  std::vector<Addresses> exchange(int rank, const std::string& call, Addresses mine,
                                  const WhileWaiting& while_waiting) override {
    return addresses_.exchange(rank, call, std::move(mine), while_waiting);
  }
  void finish(int rank) override { addresses_.finish(rank); }
  void wait_for_others(int rank, const WhileWaiting& while_waiting) override {
    addresses_.wait_for_others(rank, while_waiting);
  }
  PeerBarrier& barrier() override { return barrier_; }

 private:
  AddressBoard addresses_;
  PeerBarrier barrier_;
};

// Lets kernels and copies of each of these GPUs reach the stream-ordered memory of the others.
void share_memory(const std::vector<int>& ordinals) {
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
}

}  // namespace

bool can_share_memory(const std::vector<int>& ordinals) {
  for (const int from : ordinals)
    for (const int to : ordinals) {
      int is_reached = 1;
      if (from != to) ZP_CUDA(cudaDeviceCanAccessPeer(&is_reached, from, to));
      if (is_reached == 0) return false;
    }
  return PeerBarrier::is_available();
}

std::unique_ptr<Peers> thread_peers(const std::vector<std::shared_ptr<Gpu>>& gpus) {
  std::vector<int> ordinals;
  for (const std::shared_ptr<Gpu>& gpu : gpus) ordinals.push_back(gpu->ordinal());
  if (!can_share_memory(ordinals)) return nullptr;
  share_memory(ordinals);
  return std::make_unique<ThreadPeers>(gpus);
}

}  // namespace zeroproof::cuda
